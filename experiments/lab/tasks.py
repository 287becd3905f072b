# SPDX-License-Identifier: MIT
"""The tasks that several experiments share, so that they share results too."""

# Momentum 0.9 in the form of PyTorch and weight decay 1e-4, as in the papers.
# All models are tested once, after the last step, on all test images; runs of
# ResNet-8 that only choose a rate on 2,000.
IMAGES = {"momentum": 0.9, "weight_decay": 1e-4, "schedule": "cosine",
          "test_every": 0, "test_limit": 0}
LENET = {**IMAGES, "model": "lenet", "data": "fashion-mnist", "workers": 8,
         "batch": 32, "warmup": 0}
LENET_EPOCHS = {"epochs": 5}
LENET_RATES = ({"lr": 0.02}, {"lr": 0.06}, {"lr": 0.2})

RESNET = {**IMAGES, "model": "resnet8", "data": "cifar-10", "limit": 10000,
          "augment": True, "workers": 8, "batch": 16, "warmup": 1}
RESNET_TUNING = {"epochs": 5, "test_limit": 2000}
RESNET_FINAL = {"epochs": 20}
RESNET_RATES = ({"lr": 0.03}, {"lr": 0.1}, {"lr": 0.3})



def rates_text(variants):
    """The rates of variants as text: 0.1, 0.2 and 0.4."""
    found = ["%g" % variant["lr"] for variant in variants]
    return ", ".join(found[:-1]) + " and " + found[-1]


# Examples of the data sets, for estimates.
EXAMPLES = {"fashion-mnist": 60000, "cifar-10": 50000, "a9a": 32561,
            "wikitext-2": 2088628, "sotu": 1787432}
