"""Do a model's localisation maps agree with where radiologists see a finding?"""
