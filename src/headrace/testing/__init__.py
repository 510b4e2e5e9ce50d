"""For tests of applications and of other stores: what headrace proves itself with.

Ships with the package. Nothing here needs pytest.
"""
