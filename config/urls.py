"""Every URL and the API router, on one page."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from compliance import api as compliance
from compliance import api_franchise_tax as franchise_tax
from compliance import api_moves as moves
from compliance import api_preview as preview
from config import health
from filings import api as filings
from grants import api as grants
from portals import api as portals


class Router(SimpleRouter):
    """Addresses with or without the last slash: a redirect would lose the body of a POST."""

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"


router = Router()
router.register("portfolios", compliance.PortfolioViewSet)
router.register("entities", franchise_tax.EntityViewSet)
router.register("franchise-tax", franchise_tax.FranchiseTaxViewSet, basename="franchise-tax")
router.register("registrations", filings.RegistrationViewSet)
router.register("deadlines", moves.DeadlineViewSet)
router.register("preview-deadlines", preview.PreviewViewSet, basename="preview-deadlines")
router.register("filings", filings.FilingViewSet)
router.register("batches", filings.BatchViewSet)
router.register("status-checks", filings.StatusCheckViewSet)
router.register("portals", portals.PortalViewSet)
router.register("intents", portals.IntentViewSet)
router.register("fallout", portals.FalloutViewSet, basename="fallout")
router.register("resolutions", portals.ResolutionViewSet)
router.register("ledger", compliance.LedgerViewSet)
router.register("events", compliance.EventViewSet)
router.register("funders", grants.FunderViewSet)
router.register("opportunities", grants.OpportunityViewSet)
router.register("grant-submissions", grants.GrantSubmissionViewSet)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include((router.urls, "api"))),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    # The page and its script apart, because our content security policy takes no inline script.
    path("api/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
]

handler400 = "config.errors.bad_request"
handler403 = "config.errors.permission_denied"
handler404 = "config.errors.page_not_found"
handler500 = "config.errors.server_error"
