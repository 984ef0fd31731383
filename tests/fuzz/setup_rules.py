"""Rules about payload specs, configs and secrets."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.fuzz import wishes
from tests.fuzz.conversation import Json, expect, expect_by
from tests.fuzz.shown import shows_setup
from tests.fuzz.wishes import Reference, picks, references
from tests.fuzz.world import Rules

KINDS = {
    "payload-specs": (wishes.PAYLOAD_SPECS, "PAYLOAD_SPEC_NOT_FOUND"),
    "configs": (wishes.CONFIGS, "CONFIG_NOT_FOUND"),
    "secrets": (wishes.SECRETS, "SECRET_NOT_FOUND"),
}
_KINDS = st.sampled_from(list(KINDS))


class SetupRules(Rules):
    """What endpoints refer to."""

    @rule(kind=_KINDS, which=st.integers(0, 1), pick=picks)
    def create(self, kind: str, which: int, pick: int) -> None:
        """A name can be taken once."""
        name = KINDS[kind][0][which]
        content, body = self._content(kind, pick)
        answered = self.talk.call("POST", f"/{kind}", {"name": name, **body})
        if name in self.model.setup[kind]:
            expect(answered, (409, "CONFLICT"))
        else:
            expect(answered, (201, ""))
            self._remember_setup(kind, name, content)
            shows_setup(kind, name, content, answered.json)

    @rule(kind=_KINDS, of=references, pick=picks)
    def change(self, kind: str, of: Reference, pick: int) -> None:
        """What a template names cannot be taken away."""
        name = self._name(kind, of)
        content, body = self._content(kind, pick)
        answered = self.talk.call("PUT", f"/{kind}/{name}", body)
        if name not in self.model.setup[kind]:
            expect(answered, (404, KINDS[kind][1]))
            return
        takes_v_away = kind == "configs" and "v" not in content
        in_the_way = self.model.names_v_of(name) if takes_v_away else False
        expect_by(in_the_way, answered, (409, "CONFLICT"), (200, ""))
        if answered.is_success:
            self._remember_setup(kind, name, content)
            shows_setup(kind, name, content, answered.json)

    @rule(kind=_KINDS, of=references)
    def delete(self, kind: str, of: Reference) -> None:
        """What is referred to stays."""
        name = self._name(kind, of)
        answered = self.talk.call("DELETE", f"/{kind}/{name}")
        if name not in self.model.setup[kind]:
            expect(answered, (404, KINDS[kind][1]))
            return
        expect_by(self.model.is_referred_to(kind, name), answered, (409, "CONFLICT"), (204, ""))
        if answered.is_success:
            del self.model.setup[kind][name]

    @rule(kind=_KINDS, of=references)
    def read(self, kind: str, of: Reference) -> None:
        """It is what it was last set to."""
        name = self._name(kind, of)
        answered = self.talk.call("GET", f"/{kind}/{name}")
        if name not in self.model.setup[kind]:
            expect(answered, (404, KINDS[kind][1]))
        else:
            expect(answered, (200, ""))
            shows_setup(kind, name, self.model.setup[kind][name], answered.json)

    @rule(kind=st.sampled_from([*KINDS, "endpoints"]), limit=st.integers(1, 3))
    def list_setup(self, kind: str, limit: int) -> None:
        """Page by page, all that is there."""
        names = [item["name"] for item in self.talk.items(f"/{kind}", limit)]
        there = self.model.endpoints if kind == "endpoints" else self.model.setup[kind]
        assert sorted(names) == sorted(there)

    def _name(self, kind: str, of: Reference) -> str:
        return wishes.name_of(of.pick, self.model.setup[kind], KINDS[kind][0])

    def _content(self, kind: str, pick: int) -> tuple[Any, Json]:
        """Something for a thing of this kind: as the model keeps it, and as the contract writes it."""
        if kind == "payload-specs":
            schema = list(wishes.SCHEMAS)[pick % len(wishes.SCHEMAS)]
            return schema, {"schema": wishes.SCHEMAS[schema]}
        if kind == "configs":
            values = {"w": pick} if pick % 4 == 3 else {"v": pick}
            return values, {"values": values}
        value = self.model.fresh("never-to-be-shown-") + "."
        self.talk.secrets.add(value)
        return value, {"value": value}

    def _remember_setup(self, kind: str, name: str, content: Any) -> None:
        self.model.setup[kind][name] = content
        if kind == "configs":
            self.model.v_history.setdefault(name, []).append(content.get("v"))
        if kind == "secrets":
            self.model.secret_history.setdefault(name, []).append(content)
