"""Secrets that say by their first letters what they are: `ghp_…`, `sk-…`, `xoxb-…`, `AKIA…`. Pure.

What follows a beginning is read to its end, or given up within a few letters, so a search is linear in the text.
"""

import re

# Of what somebody wrote by hand (`sk-learn-of-all-kinds`) none has a digit or a capital among its first letters.
_RANDOM = r"(?=[a-z_-]{0,40}+[A-Z0-9])"
_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"gh[opsur]_[A-Za-z0-9]{16,}+"  # GitHub
    r"|github_pat_[A-Za-z0-9_]{16,}+"
    r"|glpat-[\w-]{16,}+"  # GitLab
    rf"|sk-{_RANDOM}[\w-]{{16,}}+"  # OpenAI, Anthropic, OpenRouter
    r"|[prs]k_(?:live|test)_[A-Za-z0-9]{8,}+"  # Stripe
    r"|whsec_[A-Za-z0-9+/=_-]{16,}+"
    r"|xox[a-z](?:\.[a-z]{1,6})?-[A-Za-z0-9-]{8,}+"  # Slack
    r"|xapp-[A-Za-z0-9-]{16,}+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS: with it half of a pair is known
    r"|AIza[\w-]{30,}+"  # Google
    r"|npm_[A-Za-z0-9]{30,}+"
    r"|pypi-[\w-]{30,}+"
    r"|hf_[A-Za-z0-9]{20,}+"  # Hugging Face
    rf"|hr_{_RANDOM}[\w-]{{30,}}+"  # our own
    r")"
)
HINT = r"gh[opsur]_|github_pat_|glpat-|sk-|[prs]k_|whsec_|xox[a-z]|xapp-|AKIA|ASIA|AIza|npm_|pypi-|hf_|hr_"


def without_prefixed(text: str, mark: str) -> str:
    return _PREFIXED.sub(mark, text)
