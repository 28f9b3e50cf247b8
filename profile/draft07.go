package profile

import "time"

// Draft07 is draft-ietf-httpapi-idempotency-key-header-07, which expired on 18
// April 2026 and is no RFC, with raw keys as the APIs in the field take them
// (the draft asks for a quoted string; set Encoding to SFString for a server
// that insists). It is the default where nothing is known of an API, so it is
// cautious: the window is a cap of 24 hours that no server has promised.
func Draft07() *Profile {
	const draft = "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/07/"
	problem := []string{"application/problem+json"}
	said := Source{Ref: draft, Date: "2025-10-15", Confidence: Excerpt}
	field := Source{Ref: "field practice: the draft leaves it open", Date: "2026-11", Confidence: Assumed}
	http := Source{Ref: "https://www.rfc-editor.org/rfc/rfc9110", Date: "2022-06", Confidence: Primary}
	return &Profile{
		Name:     "draft-07",
		Version:  "07",
		Carrier:  Carrier{Place: Header, Name: "Idempotency-Key"},
		Encoding: Raw,
		Key:      KeyRule{MaxBytes: 255},
		Methods:  []string{"POST", "PATCH"},
		Window:   Window{Floor: 24 * time.Hour, Published: No},
		Mismatch: []Matcher{
			{Status: []int{422}, Header: "Content-Type", Has: problem},
			{Status: []int{422}, Header: "Link", Has: []string{"describedby"}},
		},
		InProgress: []Matcher{{Status: []int{409}}},
		Replay:     replayMarks(),
		NotActed:   notActed(),
		Stored: Stored{
			Success: Yes,
			Client:  []Matcher{{Status: []int{400, 402, 404, 409, 410, 422}, Header: "Content-Type", Has: problem}},
		},
		RetryAfter: hintsHTTP(),
		Reconcile:  "Ask the API for the resource by a reference of your own, or its operator by the key.",
		Sources: map[string]Source{
			"Carrier": said, "Encoding": field, "Key": field, "Methods": said, "Window": field,
			"Mismatch": said, "InProgress": said, "Replay": field, "NotActed": http,
			"Stored": said, "RetryAfter": http, "Reconcile": field,
		},
	}
}

// replayMarks are the spellings in use of "this is the stored answer to an earlier request". Left out is what also
// stands in first answers: the key repeated, Repeatability-Result, Original-Request (a replay only where it differs
// from Request-Id).
func replayMarks() []Matcher {
	var marks []Matcher
	for _, name := range []string{
		"Idempotent-Replayed", "Idempotency-Replayed", "X-Idempotent-Replayed", "X-Idempotency-Replayed",
		"Request-Idempotency",     // PPRO
		"Idempotent-Response",     // Nylas
		"X-Idempotency-Cache-Hit", // Flutterwave
	} {
		marks = append(marks, Matcher{Header: name, Has: []string{"true"}})
	}
	for _, name := range []string{"Idempotency-Status", "X-Idempotency-Status"} { // Solidgate, integrated.finance
		marks = append(marks, Matcher{Header: name, Has: []string{"replayed"}})
	}
	return marks
}
