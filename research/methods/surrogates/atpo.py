"""The surrogate of AT2PO (arXiv 2601.04767): GSPO with wider limits."""

from pydantic import Field

from agents.msgrpo import GSPO, configured


@configured
class ATPO(GSPO):
    """GSPO with wider limits."""

    clip_low: float = Field(3e-3, ge=0, le=1)
    """The response's ratio is clipped below at 1 - clip_low, if that lowers the objective."""
    clip_high: float = Field(4e-3, ge=0)
    """The response's ratio is clipped above at 1 + clip_high, if that lowers the objective."""
