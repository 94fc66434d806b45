# debian: python3-statsmodels
import numpy as np
import statsmodels.api as sm
from statsmodels.tsa.arima.model import ARIMA

random = np.random.default_rng(5)
x = random.standard_normal((200, 2))
y = 1 + x @ [2.0, -3.0] + 0.01 * random.standard_normal(200)
assert np.allclose(sm.OLS(y, sm.add_constant(x)).fit().params, [1, 2, -3], atol=0.01)
series = np.zeros(300)
for i in range(1, 300):
    series[i] = 0.8 * series[i - 1] + random.standard_normal()
assert abs(ARIMA(series, order=(1, 0, 0)).fit().params[1] - 0.8) < 0.15
