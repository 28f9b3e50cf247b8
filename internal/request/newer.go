package request

import (
	"fmt"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Newer returns an error if a later version of this module wrote into the record a carrier (place of the key) or a recipe (rule for fingerprints) unknown to
// this version. The error names it. Without one, Newer returns nil. Such a record is not sent: with an unknown carrier the key would be left out.
func Newer(rec *persist.Record) error {
	places := []profile.Place{profile.Header, profile.Body, profile.Form, profile.Query, profile.Nowhere}
	if !slices.Contains(places, profile.Place(rec.Carrier)) {
		return fmt.Errorf("its key travels in %q, which this version does not know; a later one has begun it", rec.Carrier)
	}
	if _, known := parseRecipe(rec.Recipe); !known {
		return fmt.Errorf("its fingerprint has the recipe %q, which this version does not know; a later one has begun it", rec.Recipe)
	}
	return nil
}
