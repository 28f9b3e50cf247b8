package bugs

import (
	"net/http"
	"strings"
)

// protectedBytesMax is the length of the longest body with protection in large-body-unprotected.
const protectedBytesMax = 64 << 10

// protectionBugs returns the bugs of a server that silently ignores the keys of some requests. Hidden: the answers look right, and only a count of
// effects shows the bug. Cases are the test cases that must find the bug.
func protectionBugs() []Bug {
	return []Bug{
		{
			Name: "patch-unprotected", Description: "Keys are honoured on POST only: every PATCH is executed.",
			Impact: "A retried change is made twice: a balance is raised twice.", Hidden: true,
			Cases:  []string{"replay/other-method"},
			change: unprotected(func(x *exchange) bool { return x.Request.Method == http.MethodPatch }),
		}, {
			Name: "other-route-unprotected", Description: "Keys are honoured under /payments only, where the middleware is mounted.",
			Impact: "A retried refund pays the customer twice.",
			Cases:  []string{"replay/second-path"},
			change: unprotected(func(x *exchange) bool { return !strings.HasPrefix(x.Request.URL.Path, "/payments") }),
		}, {
			Name: "action-unprotected", Description: "Keys are honoured on creation only: actions on a resource are executed each time.",
			Impact: "A retried capture takes the money twice.", Hidden: true,
			Cases:  []string{"replay/without-body"},
			change: unprotected(func(x *exchange) bool { return strings.Count(strings.Trim(x.Request.URL.Path, "/"), "/") > 0 }),
		}, {
			Name: "form-unprotected", Description: "Keys are honoured for JSON only: a form, or a body of another type, is executed each time.",
			Impact: "A client that sends forms, as Stripe's do, is charged again by each retry.",
			Cases:  []string{"replay/other-content-type"},
			change: unprotected(func(x *exchange) bool {
				kind := x.Request.Header.Get("Content-Type")
				return kind != "" && !strings.Contains(kind, "json")
			}),
		}, {
			Name: "empty-body-unprotected", Description: "A request without a body is executed each time.",
			Impact: "A retried cancellation, which needs no body, happens twice.",
			Cases:  []string{"replay/without-body"},
			change: unprotected(func(x *exchange) bool { return len(x.Body) == 0 }),
		}, {
			Name: "large-body-unprotected", Description: "A body over 64 KiB is executed each time.",
			Impact: "A long order, of all orders, is placed twice by its retry.",
			Cases:  []string{"replay/large-body"},
			change: unprotected(func(x *exchange) bool { return len(x.Body) > protectedBytesMax }),
		}, {
			Name: "authorised-unprotected", Description: "Requests with credentials are executed each time, as a cache in front passes them by.",
			Impact: "Every customer who is logged in is charged again by a retry.",
			Cases:  []string{"replay/effects-once"},
			change: unprotected(func(x *exchange) bool { return x.Request.Header.Get("Authorization") != "" }),
		}, {
			Name: "chunked-unprotected", Description: "A chunked request is executed each time.",
			Impact: "A client that streams its body is charged again by each retry.",
			Cases:  []string{"net/chunked-equals-length"},
			change: unprotected(func(x *exchange) bool { return x.Request.ContentLength < 0 }),
		},
	}
}

// unprotected returns a mutation of the mock: it ignores the keys of the requests that which selects.
func unprotected(which func(*exchange) bool) mutation {
	return mutation{Read: func(_ *layer, x *exchange) reading {
		if x.Key.Err == nil && which(x) {
			return reading{}
		}
		return x.Key
	}}
}
