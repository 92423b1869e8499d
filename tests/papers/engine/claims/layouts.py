"""Which data sets the folds of benchmarks test on, where several folds test on the same ones."""

import numpy as np

SIX = ("german", "phoneme", "satimage", "segment", "spambase", "vowel")
HPOB_MINI = {
    "glmnet_2": ("spambase", "vowel"), "rpart_3": SIX, "rpart_6": SIX, "svm_8": SIX, "ranger_10": SIX,
    "xgboost_16": SIX,
}  # fmt: skip
"""Version 2: four test tasks of glmnet_2 tie at the best, and only train."""
CMBO_MINI = {
    "rpart_3, split 1": ("led7digit", "mushroom", "page-blocks0", "satimage", "spambase"),
    "rpart_3, split 2": ("banana", "chess", "contraceptive", "ring", "vowel"),
    "rpart_3, split 3": ("mammographic", "monk-2", "penbased", "phoneme", "yeast1"),
    "rpart_6, split 1": ("led7digit", "page-blocks0", "penbased", "phoneme", "pima"),
    "rpart_6, split 2": ("chess", "german", "magic", "spambase", "twonorm"),
    "rpart_6, split 3": ("banana", "contraceptive", "ring", "segment", "texture"),
    "svm_8, split 1": ("australian", "breast_cancer", "led7digit", "mammographic", "ring"),
    "svm_8, split 2": ("ionosphere", "magic", "monk-2", "tic-tac-toe", "vehicle"),
    "svm_8, split 3": ("chess", "phoneme", "segment", "spambase", "twonorm"),
    "ranger_10, split 1": ("digits", "german", "mushroom", "penbased", "vehicle"),
    "ranger_10, split 2": ("australian", "banana", "breast_cancer", "mammographic", "yeast1"),
    "ranger_10, split 3": ("led7digit", "page-blocks0", "pima", "ring", "vowel"),
}
CROSSED = {"hpob_mini": HPOB_MINI, "cmbo_mini": CMBO_MINI}


def labels(benchmark: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each test task's fold, and that of its data set."""
    listed = [(fold, name) for fold, names in CROSSED[benchmark].items() for name in names]
    folds, names = zip(*listed, strict=True)
    return tuple(np.unique(one, return_inverse=True)[1] for one in (folds, names))
