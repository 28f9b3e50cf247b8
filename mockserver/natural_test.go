package mockserver_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// taken is a profile without a key whose order numbers are taken once.
func taken(path, list string) *profile.Profile {
	p := profile.None()
	p.Duplicate = []profile.Matcher{{Status: []int{400}, Pointer: "/errors/0/code", Equals: []string{"exists"}}}
	p.Reference = &profile.Reference{Path: path, List: list, Same: []profile.Same{{Request: "/meta/order", Resource: "/ref"}, {Request: "/amount", Resource: "/total/value"}}}
	return p
}

// A number is taken once, also by many at a time; the second answer is the profile's, and the lookup finds the first.
func TestReferencesAreTakenOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, list, found, absent string }{
		{"/orders?ref={/meta/order}", "/data", "/orders?ref=a%2F1+x", "/orders?ref=b"},
		{"{path}/{/meta/order}", "", "/payments/a%2F1%20x", "/payments/b"},
	} {
		mocktest.Bubble(t, mockserver.Config{Profile: taken(c.path, c.list)}, func(s *mockserver.Server, cl *client) {
			const order = `{"meta":{"order":"a/1 x"},"amount":1.50}`
			var all sync.WaitGroup
			statuses := make(chan int, 8)
			for range cap(statuses) {
				all.Go(func() { statuses <- cl.Do(request{Body: order}).Status })
			}
			all.Wait()
			close(statuses)
			made := 0
			for status := range statuses {
				if status == 201 {
					made++
				}
			}
			refused := cl.Do(request{Body: `{"meta":{"order":"a/1 x"},"amount":2}`}).Want(t, 400)
			if code := mocktest.Member(t, refused.Body, "errors", "first", "code"); made != 1 || code != "exists" || s.Ledger().Snapshot().Effects != 1 {
				t.Errorf("%d were made; then %s", made, refused.Body)
			}
			cl.Do(request{Body: `{"amount":2}`}).Want(t, 201) // no number, so that it is like no other
			at := []string{}
			absent := 404
			if c.list != "" {
				at, absent = append(at, "data", "first"), 200
			}
			found := cl.Do(request{Method: http.MethodGet, Path: c.found}).Want(t, 200)
			ref, value := mocktest.Member(t, found.Body, append(at, "ref")...), mocktest.Member(t, found.Body, append(at, "total", "value")...)
			if ref != "a/1 x" || value != 1.5 {
				t.Errorf("found %s", found.Body)
			}
			if none := cl.Do(request{Method: http.MethodGet, Path: c.absent}).Want(t, absent); c.list != "" && none.Body != `{"data":[]}` {
				t.Errorf("absent: %s", none.Body)
			}
			s.Reset()
			cl.Do(request{Body: order}).Want(t, 201)
		})
	}
}
