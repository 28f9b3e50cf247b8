package request

import (
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestOldRecipeTakesWhatItKept: a record of the first version of the recipe is compared with the headers and the query
// that it recorded, credentials of today included, and without those that it left out then.
func TestOldRecipeTakesWhatItKept(t *testing.T) {
	t.Parallel()
	request := func(auth, token, sig string) *Snapshot {
		req := post(t, "{}")
		req.URL.RawQuery = "sig=" + sig
		req.Header = http.Header{"X-Auth": {auth}, "X-Token": {token}}
		s, _, err := reader().Read(req, profile.Draft07(), Given{Keys: []string{"k"}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	standing := persist.Record{
		Origin: "https://api.example.com:443", Method: "POST", Target: "/p?sig=1", Header: http.Header{"X-Auth": {"a"}}, Body: []byte("{}"),
		Recipe: "v1 Content-Type X-Auth X-Token",
	}
	standing.Fingerprint, _ = fingerprint(&standing)
	for _, r := range []struct {
		auth, token, sig string
		same             bool
	}{{"a", "t", "1", true}, {"a", "other", "1", true}, {"b", "t", "1", false}, {"a", "t", "2", false}} {
		if s := request(r.auth, r.token, r.sig); s.Same(&standing) != r.same {
			t.Errorf("%+v: the same: %v", r, !r.same)
		}
	}
	if !Intact(&standing) {
		t.Error("the record is not intact")
	}
	standing.Recipe = "v9 Content-Type"
	if Intact(&standing) || request("a", "t", "1").Same(&standing) {
		t.Error("a recipe of a later version is known")
	}
}
