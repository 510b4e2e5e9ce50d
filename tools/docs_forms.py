"""An extension of griffe: `enqueue = sync_form(aenqueue)` is shown as the method that it is, beside its async form."""

import re
from typing import Any

import griffe

_FORM = re.compile(r"sync_form\((\w+)\)")


class BlockingForms(griffe.Extension):
    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        for name, member in list(cls.members.items()):
            found = _FORM.fullmatch(str(getattr(member, "value", None)))
            form = cls.members.get(found[1]) if found else None
            if not isinstance(form, griffe.Function):
                continue
            blocking = griffe.Function(
                name,
                lineno=form.lineno,
                endlineno=form.endlineno,
                parameters=form.parameters,
                returns=form.returns,
                docstring=form.docstring,
            )
            cls.set_member(name, blocking)
            form.lineno = (form.lineno or 0) + 1  # the blocking form first
            form.docstring = griffe.Docstring(f"The async form of `{name}`.", parent=form)
