"""The names that ``__init__.py`` imports on first use."""

from atomlearn.verification.answers import Verified as Verified
from atomlearn.verification.answers import verify as verify
from atomlearn.verification.bounds import check as check
from atomlearn.verification.bounds import claim_digest as claim_digest
from atomlearn.verification.bounds import data_digest as data_digest
from atomlearn.verification.bounds import proved as proved
from atomlearn.verification.claims import claim_of as claim_of
from atomlearn.verification.models import fit_of_result as fit_of_result
from atomlearn.verification.models import fits_of_estimator as fits_of_estimator
