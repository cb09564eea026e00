"""What methods have in common that look at returns."""

from typing import ClassVar

from pydantic import Field

from agents.msgrpo.plugins import Shared, configured


@configured
class ByReturn:
    """A method that needs nothing but what was paid, discounted as the run says."""

    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in a return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}
