package classify

import (
	"hash/fnv"
	"net/http"

	"github.com/oncehttp/oncehttp/profile"
)

// KeptError returns a number (a hash, at least 1) for the content of a 500 that the API may keep under the key; zero for any other answer. It is zero, too, for
// a gateway's answer, a page, an empty body, and any error of an API declared to keep none.
func KeptError(p *profile.Profile, a Answer) uint64 {
	if a.Status != http.StatusInternalServerError || p.Stored.ServerError == profile.No || !a.Whole || a.Unread || !fromAPI(&a) {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(a.Body) // never fails
	return max(h.Sum64(), 1)
}
