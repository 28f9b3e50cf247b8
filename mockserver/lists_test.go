package mockserver_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// ids are those of the resources in a list.
func ids(t *testing.T, body string) (all []string) {
	t.Helper()
	list, isList := mocktest.Member(t, body, "data").([]any)
	if !isList {
		t.Fatalf("%s is no list", body)
	}
	for _, resource := range list {
		id, _ := resource.(map[string]any)["id"].(string)
		all = append(all, id)
	}
	return all
}

// Stripe lists the caller's own objects, the newest first, page by page, those made since a time, as they are now.
func TestStripeLists(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(s *mockserver.Server, cl *client) {
		get := func(query string) mocktest.Reply {
			return cl.Do(request{Method: http.MethodGet, Path: "/v1/charges" + query})
		}
		get("").Want(t, 404) // nothing says that it is a collection
		if got := ids(t, get("?limit=1").Want(t, 200).Body); len(got) != 0 {
			t.Errorf("before anything was made: %q", got)
		}
		for n := range 12 {
			cl.Do(request{Path: "/v1/charges", Key: fmt.Sprint(n), Body: "amount=100&description=012&metadata[order]=7"}).Want(t, 201)
			time.Sleep(time.Second)
		}
		cl.Do(request{Path: "/v1/refunds", Key: "r", Body: "amount=1"}).Want(t, 201)
		cl.Do(request{Path: "/v1/charges", Key: "0", Body: "amount=1", Header: http.Header{"Stripe-Account": {"a"}, "Content-Type": {formType}}}).Want(t, 201)
		cl.Do(request{Method: http.MethodDelete, Path: "/v1/charges/v1_charges_11"}).Want(t, 204)
		first := get("").Want(t, 200)
		for _, c := range []struct {
			path []string
			want any
		}{
			{[]string{"object"}, "list"}, {[]string{"has_more"}, true}, {[]string{"data", "", "id"}, "v1_charges_12"},
			{[]string{"data", "", "amount"}, 100.0}, {[]string{"data", "", "description"}, "012"}, {[]string{"data", "", "metadata", "order"}, "7"},
		} {
			if got := mocktest.Member(t, first.Body, c.path...); got != c.want {
				t.Errorf("%q: %v, want %v", c.path, got, c.want)
			}
		}
		since := time.Now().Add(-5 * time.Second).Unix()
		for query, want := range map[string]string{
			"?limit=2": "[v1_charges_12 v1_charges_10]", "?limit=2&starting_after=v1_charges_10": "[v1_charges_9 v1_charges_8]",
			"?starting_after=v1_charges_2": "[v1_charges_1]", "?starting_after=v1_charges_1": "[]",
			fmt.Sprintf("?created%%5Bgte%%5D=%d", since): "[v1_charges_12 v1_charges_10 v1_charges_9 v1_charges_8]",
		} {
			if got := fmt.Sprint(ids(t, get(query).Want(t, 200).Body)); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		if last := get("?limit=100").Want(t, 200); mocktest.Member(t, last.Body, "has_more") != false || len(ids(t, last.Body)) != 11 {
			t.Errorf("all of them: %s", last.Body)
		}
		for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?created[gte]=today", "?starting_after=ch_0", "?customer=c", "?starting_after=v1_refunds_13"} {
			get(query).Want(t, 400)
		}
		s.Reset()
		get("").Want(t, 404)
	})
}

// Increase selects by the key, among the caller's own; other APIs have no list at the mock.
func TestIncreaseLists(t *testing.T) {
	t.Parallel()
	increase, _ := profile.ByName("increase")
	mocktest.Bubble(t, mockserver.Config{Profile: increase}, func(_ *mockserver.Server, cl *client) {
		for _, key := range []string{"a", "b", "c"} {
			cl.Post(key).Want(t, 201)
		}
		cl.Do(request{Key: "b", Header: http.Header{"Authorization": {"another"}}}).Want(t, 201)
		cl.Do(request{}).Want(t, 201)
		for query, want := range map[string]string{"": "[payments_5 payments_3 payments_2 payments_1]", "?idempotency_key=b": "[payments_2]", "?idempotency_key=x": "[]"} {
			reply := cl.Do(request{Method: http.MethodGet, Path: "/payments" + query}).Want(t, 200)
			if got := fmt.Sprint(ids(t, reply.Body)); got != want || mocktest.Member(t, reply.Body, "next_cursor") != nil {
				t.Errorf("%s: %s, want %s", query, reply.Body, want)
			}
		}
		one := cl.Do(request{Method: http.MethodGet, Path: "/payments?limit=1"}).Want(t, 200)
		if mocktest.Member(t, one.Body, "next_cursor") != "payments_5" || mocktest.Member(t, one.Body, "data", "", "idempotency_key") != nil {
			t.Errorf("the first page: %s", one.Body)
		}
		two := cl.Do(request{Method: http.MethodGet, Path: "/payments?limit=1&cursor=payments_5"}).Want(t, 200)
		if mocktest.Member(t, two.Body, "data", "", "idempotency_key") != "c" || mocktest.Member(t, two.Body, "data", "", "amount") != 100.0 {
			t.Errorf("the second page: %s", two.Body)
		}
	})
	mocktest.Bubble(t, mockserver.Config{}, func(_ *mockserver.Server, cl *client) {
		cl.Post("a").Want(t, 201)
		cl.Do(request{Method: http.MethodGet, Path: "/payments?limit=1"}).Want(t, 404)
	})
}
