"""In which order do tests run? The contract's first: they compile every learner, and all later ones load that."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name != "test_contract.py")
