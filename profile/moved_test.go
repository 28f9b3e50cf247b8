package profile_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// TestMovedToData: the profiles that were Go code say as data what they said as code, which is kept here.
func TestMovedToData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ was, is *profile.Profile }{
		{oldDraft07(), profile.Draft07()}, {oldStripe(), profile.StripeV1()}, {oldGoCardless(), profile.GoCardless()},
	} {
		c.is.Title, c.is.Notes = "", nil // are new
		delete(c.is.Sources, "Notes")
		c.is.Body = profile.BodyRule{} // is new, too
		delete(c.is.Sources, "Body")
		for _, field := range []string{"NotActed", "RetryAfter"} { // each status has its own source now
			c.was.Sources[field] = c.is.Sources[field]
		}
		if c.is.Name == "gocardless" { // a repeat is answered 409, never with the answer that was kept
			c.was.Stored = profile.Stored{}
			delete(c.was.Sources, "Stored")
		}
		if c.is.Name == "stripe" { // a better source says the same now
			if s := c.is.Sources["Mismatch"]; s.Confidence != profile.Primary {
				t.Errorf("stripe: the mismatch is from %+v", s)
			}
			c.is.Sources["Mismatch"] = c.was.Sources["Mismatch"]
		}
		was, is := reflect.ValueOf(*c.was), reflect.ValueOf(*c.is)
		for i := range was.NumField() {
			if name := was.Type().Field(i).Name; !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
				t.Errorf("%s: %s was %+v, is %+v", c.was.Name, name, was.Field(i), is.Field(i))
			}
		}
	}
}

func oldDraft07() *profile.Profile {
	const draft = "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/07/"
	problem := []string{"application/problem+json"}
	said := profile.Source{Ref: draft, Date: "2025-10-15", Confidence: profile.Excerpt}
	field := profile.Source{Ref: "field practice: the draft leaves it open", Date: "2026-11", Confidence: profile.Assumed}
	http := profile.Source{Ref: "https://www.rfc-editor.org/rfc/rfc9110", Date: "2022-06", Confidence: profile.Primary}
	return &profile.Profile{
		Name:     "draft-07",
		Version:  "07",
		Carrier:  profile.Carrier{Place: profile.Header, Name: "Idempotency-Key"},
		Encoding: profile.Raw,
		Key:      profile.KeyRule{MaxBytes: 255},
		Methods:  []string{"POST", "PATCH"},
		Window:   profile.Window{Floor: 24 * time.Hour, Published: profile.No},
		Mismatch: []profile.Matcher{
			{Status: []int{422}, Header: "Content-Type", Has: problem},
			{Status: []int{422}, Header: "Link", Has: []string{"describedby"}},
		},
		InProgress: []profile.Matcher{{Status: []int{409}}},
		Replay:     oldReplayMarks(),
		NotActed:   oldNotActed(),
		Stored: profile.Stored{
			Success: profile.Yes,
			Client:  []profile.Matcher{{Status: []int{400, 402, 404, 409, 410, 422}, Header: "Content-Type", Has: problem}},
		},
		RetryAfter: oldHints(),
		Reconcile:  "Ask the API for the resource by a reference of your own, or its operator by the key.",
		Sources: map[string]profile.Source{
			"Carrier": said, "Encoding": field, "Key": field, "Methods": said, "Window": field,
			"Mismatch": said, "InProgress": said, "Replay": field, "NotActed": http,
			"Stored": said, "RetryAfter": http, "Reconcile": field,
		},
	}
}

// replayMarks are the spellings in use of "this is the stored answer to an earlier request". Left out is what also
// stands in first answers: the key repeated, Repeatability-Result, Original-Request (a replay only where it differs
// from Request-Id).
func oldReplayMarks() []profile.Matcher {
	var marks []profile.Matcher
	for _, name := range []string{
		"Idempotent-Replayed", "Idempotency-Replayed", "X-Idempotent-Replayed", "X-Idempotency-Replayed",
		"Request-Idempotency",     // PPRO
		"Idempotent-Response",     // Nylas
		"X-Idempotency-Cache-Hit", // Flutterwave
	} {
		marks = append(marks, profile.Matcher{Header: name, Has: []string{"true"}})
	}
	for _, name := range []string{"Idempotency-Status", "X-Idempotency-Status"} { // Solidgate, integrated.finance
		marks = append(marks, profile.Matcher{Header: name, Has: []string{"replayed"}})
	}
	return marks
}

func oldStripe() *profile.Profile {
	docs := profile.Source{Ref: "https://docs.stripe.com/api/idempotent_requests", Date: "2026-11", Confidence: profile.Excerpt}
	errs := profile.Source{Ref: "https://docs.stripe.com/error-low-level", Date: "2026-11", Confidence: profile.Excerpt}
	sdk := profile.Source{Ref: "github.com/stripe/stripe-go stripe.go (shouldRetry)", Date: "2026-11", Confidence: profile.Primary}
	traces := profile.Source{Ref: "wire traces of the sandbox (mismatch is 400 with type idempotency_error)", Date: "2026-11", Confidence: profile.Secondary}
	return &profile.Profile{
		Name:           "stripe",
		Version:        "v1",
		Carrier:        profile.Carrier{Place: profile.Header, Name: "Idempotency-Key"},
		Encoding:       profile.Raw,
		Key:            profile.KeyRule{MaxBytes: 255},
		Methods:        []string{"POST"},
		Window:         profile.Window{Floor: 24 * time.Hour, Published: profile.Yes},
		AccountHeaders: []string{"Stripe-Account", "Stripe-Context"},
		// Parameters are compared as the API version reads them.
		Fingerprint: []string{"Stripe-Version"},
		Mismatch: []profile.Matcher{
			{Status: []int{400}, Pointer: "/error/type", Equals: []string{"idempotency_error"}},
		},
		InProgress: []profile.Matcher{
			{Status: []int{409}, Pointer: "/error/code", Equals: []string{"idempotency_key_in_use"}},
			{Status: []int{429}, Pointer: "/error/code", Equals: []string{"lock_timeout"}},
		},
		Replay:   []profile.Matcher{{Header: "Idempotent-Replayed", Has: []string{"true"}}},
		NotActed: oldNotActed(),
		Stored: profile.Stored{
			Success: profile.Yes,
			// A declined card is only ever found once execution has begun.
			Client:      []profile.Matcher{{Status: []int{402}, Pointer: "/error/type", Equals: []string{"card_error"}}},
			ServerError: profile.Yes,
		},
		ShouldRetry: profile.ShouldRetry{Header: "Stripe-Should-Retry", Yes: "true", No: "false"},
		RetryAfter:  oldHints(),
		Reconcile:   "Search by metadata that you set on the object, or wait for its webhook; a 500 tells nothing of the effect.",
		Sources: map[string]profile.Source{
			"Carrier": docs, "Encoding": docs, "Key": docs, "Methods": docs, "Window": docs,
			"AccountHeaders": {Ref: "https://docs.stripe.com/connect/authentication", Date: "2026-11", Confidence: profile.Assumed}, "Fingerprint": docs,
			"Mismatch": traces, "InProgress": sdk, "Replay": docs, "NotActed": errs,
			"Stored": errs, "ShouldRetry": sdk, "RetryAfter": sdk, "Reconcile": errs,
		},
	}
}

func oldGoCardless() *profile.Profile {
	blog := profile.Source{Ref: "https://gocardless.com/blog/idempotency-keys", Date: "2026-11", Confidence: profile.Excerpt}
	sdk := profile.Source{Ref: "github.com/gocardless/gocardless-nodejs src/api.ts, src/errors.ts", Date: "2026-11", Confidence: profile.Primary}
	retries := profile.Source{Ref: "github.com/gocardless/gocardless-pro-go retries.go", Date: "2026-08", Confidence: profile.Primary}
	none := profile.Source{Ref: "not published", Date: "2026-11", Confidence: profile.Assumed}
	return &profile.Profile{
		Name:     "gocardless",
		Version:  "2015-07-06",
		Carrier:  profile.Carrier{Place: profile.Header, Name: "Idempotency-Key"},
		Encoding: profile.Raw,
		Key:      profile.KeyRule{MaxBytes: 128},
		Methods:  []string{"POST"},
		Window:   profile.Window{Floor: time.Hour, Published: profile.No},
		AlreadyDone: []profile.Matcher{{
			Status:  []int{409},
			Pointer: "/error/errors/0/reason",
			Equals:  []string{"idempotent_creation_conflict"},
		}},
		BusinessConflict: []profile.Matcher{{Status: []int{409}, Pointer: "/error/type", Equals: []string{"invalid_state"}}},
		NotActed:         oldNotActed(),
		Stored:           profile.Stored{Success: profile.Yes},
		RetryAfter:       oldHints(),
		Lookup: &profile.Lookup{
			Pointer: "/error/errors/0/links/conflicting_resource_id",
			Path:    "{path}/{id}",
		},
		Reconcile: "Send the same key again: an effect answers 409 with links.conflicting_resource_id; GET that resource.",
		Sources: map[string]profile.Source{
			"Carrier": blog, "Encoding": blog, "Key": none, "Methods": blog, "Window": none,
			"AlreadyDone": sdk, "BusinessConflict": sdk, "NotActed": retries, "Stored": blog,
			"RetryAfter": retries, "Lookup": sdk, "Reconcile": blog,
		},
	}
}

func oldHints() []profile.Hint {
	return []profile.Hint{{Header: "Retry-After", Unit: profile.HTTPDelay}}
}

func oldNotActed() profile.NotActed {
	return profile.NotActed{Again: []int{421, 425, 429}, Stop: []int{401, 403, 407}}
}
