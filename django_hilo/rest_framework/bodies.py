"""How much of a request's body is read, and how."""

import json
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rest_framework import parsers
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from django_hilo.identifiers import shown

MAX_BODY = 65_536  # bytes; the longest body that means something has some hundred


def check_length(request: Request) -> None:
    """Refuse a body that is too long, or of unknown length, before any of it is read.

    Django's own limit holds for forms only where DRF reads the stream itself.
    """
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length and request.META.get("HTTP_TRANSFER_ENCODING"):
        raise ParseError(
            _("The request needs a Content-Length header, of at most %(most)d bytes.")
            % {"most": MAX_BODY}
        )
    if length.isdecimal() and (len(length) > 18 or int(length) > MAX_BODY):
        raise ParseError(
            ngettext(
                "The body has %(length)s bytes; %(most)d byte is allowed.",
                "The body has %(length)s bytes; %(most)d bytes are allowed.",
                MAX_BODY,
            )
            % {"length": length[:30], "most": MAX_BODY}
        )


def check_keys(body: Iterable[Any], known: Iterable[str]) -> None:
    """Refuse a body with other keys: a typo must not request the default."""
    # The browsable API's forms have a key for Django.
    unknown = [shown(k) for k in body if k not in {*known, "csrfmiddlewaretoken"}]
    if not unknown:
        return
    if known:
        text = _(
            "Unknown keys: %(unknown)s. Use only these: %(known)s. JSON needs the "
            "Content-Type application/json."
        )
    else:
        text = _("Unknown keys: %(unknown)s. This request takes none.")
    names = {"unknown": ", ".join(unknown[:5]), "known": ", ".join(known)}
    raise ParseError(text % names)


class JSONParser(parsers.JSONParser):
    """DRF's, for which deep nesting and surrogates are mistakes of the client too."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Any = None
    ) -> Any:
        try:
            parsed = super().parse(stream, media_type, parser_context)
            # Pages of the browsable API repeat the body, and these cannot be encoded.
            json.dumps(parsed, ensure_ascii=False).encode()
        except RecursionError:
            raise ParseError(_("The JSON in the body is nested too deeply.")) from None
        except UnicodeEncodeError:
            raise ParseError(_("The JSON in the body has a lone surrogate.")) from None
        return parsed


PARSERS = [JSONParser, parsers.FormParser, parsers.MultiPartParser]
