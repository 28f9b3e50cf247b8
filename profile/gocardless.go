package profile

import "time"

// GoCardless is the GoCardless Pro API. A repeat is answered 409 with the id of
// what the first request made: already done, which is a success, and the
// resource itself is one GET away. How long it knows a key is not published.
func GoCardless() *Profile {
	blog := Source{Ref: "https://gocardless.com/blog/idempotency-keys", Date: "2026-11", Confidence: Excerpt}
	sdk := Source{Ref: "github.com/gocardless/gocardless-nodejs src/api.ts, src/errors.ts", Date: "2026-11", Confidence: Primary}
	retries := Source{Ref: "github.com/gocardless/gocardless-pro-go retries.go", Date: "2026-08", Confidence: Primary}
	none := Source{Ref: "not published", Date: "2026-11", Confidence: Assumed}
	return &Profile{
		Name:     "gocardless",
		Version:  "2015-07-06",
		Carrier:  Carrier{Place: Header, Name: "Idempotency-Key"},
		Encoding: Raw,
		Key:      KeyRule{MaxBytes: 128},
		Methods:  []string{"POST"},
		Window:   Window{Floor: 24 * time.Hour, Published: No},
		AlreadyDone: []Matcher{{
			Status:  []int{409},
			Pointer: "/error/errors/0/reason",
			Equals:  []string{"idempotent_creation_conflict"},
		}},
		BusinessConflict: []Matcher{{Status: []int{409}, Pointer: "/error/type", Equals: []string{"invalid_state"}}},
		NotActed:         notActed(),
		Stored:           Stored{Success: Yes},
		RetryAfter:       hintsHTTP(),
		Lookup: &Lookup{
			Pointer: "/error/errors/0/links/conflicting_resource_id",
			Path:    "{path}/{id}",
		},
		Reconcile: "Send the same key again: an effect answers 409 with links.conflicting_resource_id; GET that resource.",
		Sources: map[string]Source{
			"Carrier": blog, "Encoding": blog, "Key": none, "Methods": blog, "Window": none,
			"AlreadyDone": sdk, "BusinessConflict": sdk, "NotActed": retries, "Stored": blog,
			"RetryAfter": retries, "Lookup": sdk, "Reconcile": blog,
		},
	}
}
