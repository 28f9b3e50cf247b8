package classify

import (
	"hash/fnv"
	"net/http"

	"github.com/oncehttp/oncehttp/profile"
)

// KeptError returns a number for what a 500 says that the API may keep under the key; zero for any other answer. What a gateway answers is none,
// nor is a page or an empty body, and no error of an API that says that it keeps none.
func KeptError(p *profile.Profile, a Answer) uint64 {
	r := reader{Answer: a}
	if a.Status != http.StatusInternalServerError || p.Stored.ServerError == profile.No || !a.Whole || a.Unread || !r.fromAPI() {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(a.Body) // never fails
	return max(h.Sum64(), 1)
}
