"""Links with which somebody without an API key decides one approval.

A link is signed with the hash of the API key that made it: nobody else can make one, and revoking
the key ends its links. Links of notifications are signed with the secret of notifications. What a
link can decide is decided once, by the state of the approval.
"""

from __future__ import annotations

from penstock.errors import NotFound
from penstock.stores.cold import ApiKeys
from penstock.stores.records import ApiKey
from penstock.views.approval_links import NOTIFICATION, Link, read_token, sign

__all__ = ["Link", "read", "sign"]


async def read(
    token: str, keys: ApiKeys, now: float, notify_secret: str | None = None
) -> tuple[Link, ApiKey | None]:
    """The link of a token, and the key that made it; None for one in a notification.

    Raises `NotFound` for any that isn't valid.
    """
    refusal = NotFound("this link isn't valid, or not any more; ask for another one")
    signed = read_token(token)
    if signed is None or signed.link.expires_at < now:
        raise refusal
    link = signed.link
    if link.key_id == NOTIFICATION:
        if not notify_secret or not signed.is_signed_with(notify_secret.encode()):
            raise refusal
        return link, None
    key = next((key for key in await keys.keys() if key.id == link.key_id), None)
    if key is None or key.revoked_at is not None or not signed.is_signed_with(key.hash):
        raise refusal
    return link, key
