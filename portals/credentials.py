"""What a lane logs in with."""

from portals.models import Credential, Portal


def credential_for(portal: Portal) -> Credential:
    """The portal's credential; an empty one where none was entered, which a portal will refuse."""
    found = Credential.objects.filter(portal=portal, portfolio__isnull=True).first()
    return found or Credential(portal=portal)
