"""Rules about endpoints."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.fuzz import wishes
from tests.fuzz.conversation import expect, expect_by
from tests.fuzz.model import Endpoint, Revision
from tests.fuzz.shown import shows_endpoint
from tests.fuzz.wishes import EndpointWish, Reference, references
from tests.fuzz.world import Rules, input_of

_MISSING = (404, "ENDPOINT_NOT_FOUND")


class EndpointRules(Rules):
    """Where deliveries go."""

    @rule(name=st.sampled_from(wishes.ENDPOINTS), wish=wishes.endpoint_wishes)
    def register(self, name: str, wish: EndpointWish) -> None:
        """What an endpoint refers to must be there, and its name free."""
        wish = wish.resolved(self.model.setup)
        answered = self.talk.call("POST", "/endpoints", {"name": name, "type": "HTTP", **wish.body(self.world.url, 1)})
        refusals = [(422, fault) for fault in self.model.faults_of(wish)]
        if name in self.model.endpoints:
            refusals.append((409, "CONFLICT"))
        expect(answered, *(refusals or [(201, "")]))
        if answered.is_success:
            endpoint = self.model.endpoints[name] = Endpoint(name, [Revision(1, wish)])
            shows_endpoint(self.world, endpoint, answered.json)

    @rule(of=references, wish=wishes.endpoint_wishes)
    def replace(self, of: Reference, wish: EndpointWish) -> None:
        """The next revision is for new jobs; limits are for all, and a pause goes on."""
        name, wish = self.world.endpoint_name(of), wish.resolved(self.model.setup)
        endpoint = self.model.endpoints.get(name)
        number = endpoint.current.number + 1 if endpoint else 1
        answered = self.talk.call("PUT", f"/endpoints/{name}", wish.body(self.world.url, number))
        if endpoint is None:
            expect(answered, _MISSING)
            return
        expect(answered, *([(422, fault) for fault in self.model.faults_of(wish)] or [(200, "")]))
        if answered.is_success:
            endpoint.revisions.append(Revision(number, wish))
            shows_endpoint(self.world, endpoint, answered.json)

    @rule(of=references)
    def unregister(self, of: Reference) -> None:
        """Not while a job of it lives."""
        name = self.world.endpoint_name(of)
        endpoint = self.model.endpoints.get(name)
        answered = self.talk.call("DELETE", f"/endpoints/{name}")
        if endpoint is None:
            expect(answered, _MISSING)
            return
        expect_by(endpoint.is_live(), answered, (409, "CONFLICT"), (204, ""))
        if answered.is_success:
            endpoint.is_deleted = True
            self.model.gone.append(self.model.endpoints.pop(name))

    @rule(of=references, verb=st.sampled_from(["pause", "pause", "resume", ""]))
    def hold(self, of: Reference, verb: str) -> None:
        """Pauses, resumes, or only looks. Pausing twice keeps the first time."""
        name = self.world.endpoint_name(of)
        endpoint = self.model.endpoints.get(name)
        answered = self.talk.call("POST" if verb else "GET", f"/endpoints/{name}/{verb}".rstrip("/"))
        if endpoint is None:
            expect(answered, _MISSING)
            return
        expect(answered, (200, ""))
        if verb == "pause":
            endpoint.paused_at = endpoint.paused_at or answered.json["flow_state"]["paused_at"]
        elif verb == "resume":
            endpoint.resume()
        shows_endpoint(self.world, endpoint, answered.json)

    @rule(of=references, n=wishes.values_of_n)
    def render(self, of: Reference, n: Any) -> None:
        """Shows what would be sent, its secrets masked."""
        name = self.world.endpoint_name(of)
        answered = self.talk.call("POST", f"/endpoints/{name}/render", {"input": input_of("preview", n)})
        endpoint = self.model.endpoints.get(name)
        if endpoint is None:
            expect(answered, _MISSING)
        elif not self.world.fits(endpoint, n):
            expect(answered, (422, "INPUT_VALIDATION_FAILED"))
        elif endpoint.current.wish.names_n and n == wishes.NOTHING:
            expect(answered, (422, "TEMPLATE_RESOLUTION_FAILED"))
        else:
            expect(answered, (200, ""))
            rendered = answered.json["rendered"]
            assert rendered["url"] == f"{self.world.url}/preview"
            assert rendered["body"]["revision"] == endpoint.current.number
            assert rendered["headers"].get("X-Secret") == ("***" if endpoint.current.wish.secret else None)
