package profile

import "time"

// StripeV1 is Stripe's v1 API. It keeps a 500 under the key and gives it again,
// so that a repeat cannot help and a new key may charge twice: such an operation
// is held, to be settled by looking. Stripe's v2 API differs under the same
// header name and is not described here.
func StripeV1() *Profile {
	docs := Source{Ref: "https://docs.stripe.com/api/idempotent_requests", Date: "2026-11", Confidence: Excerpt}
	errs := Source{Ref: "https://docs.stripe.com/error-low-level", Date: "2026-11", Confidence: Excerpt}
	sdk := Source{Ref: "github.com/stripe/stripe-go stripe.go (shouldRetry)", Date: "2026-11", Confidence: Primary}
	traces := Source{Ref: "wire traces of the sandbox (mismatch is 400 with type idempotency_error)", Date: "2026-11", Confidence: Secondary}
	return &Profile{
		Name:           "stripe",
		Version:        "v1",
		Carrier:        Carrier{Place: Header, Name: "Idempotency-Key"},
		Encoding:       Raw,
		Key:            KeyRule{MaxBytes: 255},
		Methods:        []string{"POST"},
		Window:         Window{Floor: 24 * time.Hour, Published: Yes},
		AccountHeaders: []string{"Stripe-Account", "Stripe-Context"},
		// Parameters are compared as the API version reads them.
		Fingerprint: []string{"Stripe-Version"},
		Mismatch: []Matcher{
			{Status: []int{400}, Pointer: "/error/type", Equals: []string{"idempotency_error"}},
		},
		InProgress: []Matcher{
			{Status: []int{409}, Pointer: "/error/code", Equals: []string{"idempotency_key_in_use"}},
			{Status: []int{429}, Pointer: "/error/code", Equals: []string{"lock_timeout"}},
		},
		Replay:   []Matcher{{Header: "Idempotent-Replayed", Has: []string{"true"}}},
		NotActed: notActed(),
		Stored: Stored{
			Success: Yes,
			// A declined card is only ever found once execution has begun.
			Client:      []Matcher{{Status: []int{402}, Pointer: "/error/type", Equals: []string{"card_error"}}},
			ServerError: Yes,
		},
		ShouldRetry: ShouldRetry{Header: "Stripe-Should-Retry", Yes: "true", No: "false"},
		RetryAfter:  hintsHTTP(),
		Reconcile:   "Search by metadata that you set on the object, or wait for its webhook; a 500 tells nothing of the effect.",
		Sources: map[string]Source{
			"Carrier": docs, "Encoding": docs, "Key": docs, "Methods": docs, "Window": docs,
			"AccountHeaders": {Ref: "https://docs.stripe.com/connect/authentication", Date: "2026-11", Confidence: Assumed}, "Fingerprint": docs,
			"Mismatch": traces, "InProgress": sdk, "Replay": docs, "NotActed": errs,
			"Stored": errs, "ShouldRetry": sdk, "RetryAfter": sdk, "Reconcile": errs,
		},
	}
}
