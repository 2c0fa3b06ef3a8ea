"""The surface of the network paper (section 4): needed buffer against event size S and rate f, linear in f and quadratic in S.

For given coordinates the model is linear in its parameters, so that weighted least squares have a closed solution. iminuit gives the
errors (HESSE, and MINOS as a check of their symmetry). An extrapolation has two errors: the statistical error follows from the
covariance, the model error from the choice of the surface.
"""

from dataclasses import dataclass

import numpy as np

# Terms are products of powers of S [MB] and f [kHz]: (power of S, power of f).
MODELS = {
    "surface": ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)),  # the paper's shape, with every term free
    "through zero": ((1, 0), (2, 0), (1, 1), (2, 1)),  # without events no buffer is needed
    "large load": ((1, 0), (2, 1)),  # limit of the closed form when many events overlap: a S + b f S^2
}


@dataclass(frozen=True)
class Prediction:
    value: float
    statistical: float


@dataclass(frozen=True)
class Fit:
    """Bytes in MB, rates in kHz. `scaled`: errors were multiplied by sqrt(chi2/ndf), because the points scatter more than their errors."""

    model: str
    terms: tuple
    parameters: np.ndarray
    covariance: np.ndarray
    minos: list  # (low, high) by parameter
    chi2: float
    degrees: int
    r2: float
    scaled: bool

    def at(self, size_mb, rate_khz):
        row = design(self.terms, np.atleast_1d(float(size_mb)), np.atleast_1d(float(rate_khz)))[0]
        return Prediction(float(row @ self.parameters), float(np.sqrt(row @ self.covariance @ row)))

    def __call__(self, size_mb, rate_khz):
        size_mb, rate_khz = np.broadcast_arrays(np.asarray(size_mb, float), np.asarray(rate_khz, float))
        return (design(self.terms, size_mb.ravel(), rate_khz.ravel()) @ self.parameters).reshape(size_mb.shape)


def design(terms, size_mb, rate_khz):
    return np.stack([size_mb**p * rate_khz**q for p, q in terms], axis=1)


def fit(size_mb, rate_khz, buffer_mb, error_mb, model="surface"):
    """Weighted least-squares fit of one model. Errors are standard deviations of single points, above 0."""
    size_mb, rate_khz, buffer_mb, error_mb = (
        np.asarray(one, float) for one in (size_mb, rate_khz, buffer_mb, error_mb)
    )
    terms = MODELS[model]
    if len(buffer_mb) <= len(terms):
        raise ValueError(f"{len(buffer_mb)} points cannot fix the {len(terms)} parameters of the model {model}")
    if not np.all(error_mb > 0):
        raise ValueError("every point needs an error above 0")
    matrix = design(terms, size_mb, rate_khz)
    weighted = matrix / error_mb[:, None]
    scale = np.sqrt((weighted**2).sum(axis=0))  # normalises the columns: S^2 f and 1 differ by a factor of thousands
    solution, _, rank, _ = np.linalg.lstsq(weighted / scale, buffer_mb / error_mb, rcond=1e-10)
    if rank < len(terms):
        raise ValueError(
            f"the points do not tell the {len(terms)} parameters of the model {model} apart: vary size and rate independently"
        )
    start = solution / scale

    from iminuit import Minuit

    def chi2(parameters):
        return float((((matrix @ parameters - buffer_mb) / error_mb) ** 2).sum())

    minuit = Minuit(chi2, start, name=[f"S{p}f{q}" for p, q in terms])
    minuit.errordef = Minuit.LEAST_SQUARES
    minuit.migrad()
    minuit.hesse()
    minuit.minos()
    degrees = len(buffer_mb) - len(terms)
    best = float(minuit.fval)
    factor = max(1.0, best / degrees)
    residual = buffer_mb - matrix @ np.asarray(minuit.values)
    spread = ((buffer_mb - buffer_mb.mean()) ** 2).sum()
    minos = [
        (minuit.merrors[name].lower * np.sqrt(factor), minuit.merrors[name].upper * np.sqrt(factor))
        for name in minuit.parameters
    ]
    return Fit(
        model,
        terms,
        np.asarray(minuit.values),
        np.asarray(minuit.covariance) * factor,
        minos,
        best,
        degrees,
        float(1 - (residual**2).sum() / spread),
        factor > 1,
    )


@dataclass(frozen=True)
class Extrapolation:
    """value +- statistical (of the surface) +- model (half the range of the models' values). All in MB."""

    value: float
    statistical: float
    model: float
    by_model: dict


def extrapolate(points, size_mb, rate_khz, models=tuple(MODELS)):
    """points: (size_mb, rate_khz, buffer_mb, error_mb) arrays. The first model gives the quoted value."""
    fits = {}
    for model in models:
        try:
            fits[model] = fit(*points, model=model)
        except ValueError:
            if model == models[0]:
                raise
    by_model = {model: one.at(size_mb, rate_khz) for model, one in fits.items()}
    values = [prediction.value for prediction in by_model.values()]
    first = by_model[models[0]]
    return Extrapolation(first.value, first.statistical, (max(values) - min(values)) / 2, by_model), fits
