"""The benchmark: headrace and its peers, side by side, in one run on one machine (`make bench`).

It knows headrace as a user does: by its commands, its `App` and what the store says. `required.py` holds what must be
shown, `parts` measures it, `results` keeps the latest figures, `report.py` writes them as a page.
"""
