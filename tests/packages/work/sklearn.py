# debian: python3-sklearn
# pypi: scikit-learn
import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

random = np.random.default_rng(3)
x = np.concatenate([random.normal(-3, 1, (80, 4)), random.normal(3, 1, (80, 4))])
y = np.repeat([0, 1], 80)
models = (LogisticRegression(), SVC(), RandomForestClassifier(20, random_state=1))
assert all(m.fit(x, y).score(x, y) > 0.97 for m in models)
labels = KMeans(2, n_init=3, random_state=1).fit(x).labels_
assert len(set(labels[:80])) == len(set(labels[80:])) == 1 and labels[0] != labels[-1]
