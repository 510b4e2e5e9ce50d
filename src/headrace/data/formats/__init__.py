"""What tables are kept in, and what they are made of. An optional library is imported only in the file of its name."""
