package commandtest

// PlaceProfile is a profile with its keys in the parameter or field token of the PLACE.
const PlaceProfile = `{"name": "PLACE-keys", "version": "1", "sources": {"own": {"ref": "our API", "date": "2026-11", "confidence": "primary"}},
  "carrier": {"value": {"place": "PLACE", "name": "token"}, "source": "own"}}`
