package referee

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// Script holds the faults of each operation of a client, and the end of the run.
// The zero value is invalid; start from [DefaultScript] or [ParseScript].
type Script struct {
	// Name is for the report.
	Name string
	// Expect is the number of operations that the client will send. Finished is
	// closed after so many were seen and nothing came for Quiet. Zero: only POST
	// /_finish ends the run.
	Expect int
	// OperationPointer replaces mockserver.Config's. Empty: Config's is used.
	OperationPointer string
	// AttemptsMax is the allowed number of sends of one operation. Zero: 20.
	AttemptsMax int
	// Quiet is the time without a send after which the run is over: fifteen times
	// as long while an operation has no final answer, since its client may be
	// waiting. Zero: 2 s.
	Quiet time.Duration
	// Scenarios are for the operations in the order in which they first appear,
	// and from the start again when there are more of them.
	Scenarios []Scenario
}

// Scenario holds the faults of one operation: the n-th send meets the n-th fault,
// and later sends none.
type Scenario struct {
	// Name is for the report.
	Name string
	// Faults are those of the sends, in order; empty: none.
	Faults []mockserver.Fault
}

const (
	attemptsMax   = 20
	quietDelay    = 2 * time.Second
	scenariosMax  = 10_000
	scriptSendMax = 10_000
)

// problemHeader returns the header of an answer that Draft07 reads as final.
func problemHeader() http.Header { return http.Header{"Content-Type": {"application/problem+json"}} }

// DefaultScript returns the script for want of another: one operation for each situation in which clients go wrong, 17 in all. Refusals without a
// wait come three times, since the waits of three operations show whether a client's waits are random.
func DefaultScript() Script {
	status := func(code int, wait string) mockserver.Fault {
		return mockserver.Fault{Kind: mockserver.Answer, Status: code, RetryAfter: wait}
	}
	final := func(code int) mockserver.Fault {
		return mockserver.Fault{Kind: mockserver.Answer, Status: code, Header: problemHeader(), Body: `{"type":"about:blank","title":"refused"}`}
	}
	always := func(n int) (faults []mockserver.Fault) {
		for range n {
			faults = append(faults, status(503, ""))
		}
		return faults
	}
	r := Script{Name: "default", OperationPointer: "/reference", Scenarios: []Scenario{
		{"nothing goes wrong", nil},
		{"the answer is lost", []mockserver.Fault{{Kind: mockserver.DropAfter}}},
		{"unavailable five times (first of three)", always(5)},
		{"the request is lost", []mockserver.Fault{{Kind: mockserver.DropBefore}}},
		{"in progress, wait 2 s", []mockserver.Fault{status(409, "2")}},
		{"unavailable five times (second of three)", always(5)},
		{"too many requests, wait 1 s", []mockserver.Fault{status(429, "1")}},
		{"failed once", []mockserver.Fault{status(500, "")}},
		{"failed after the effect", []mockserver.Fault{{Kind: mockserver.AnswerAfter, Status: 500}}},
		{"refused for good", []mockserver.Fault{final(402)}},
		{"the key belongs to another request", []mockserver.Fault{final(422)}},
		{"the answer's body is cut off", []mockserver.Fault{{Kind: mockserver.CutBody}}},
		{"the connection is reset after the effect", []mockserver.Fault{{Kind: mockserver.ResetAfter}}},
		{"unavailable five times (third of three)", always(5)},
		{"slow", []mockserver.Fault{{Delay: 3 * time.Second}}},
		{"slow, then gone", []mockserver.Fault{{Kind: mockserver.HangAfter, Delay: 3 * time.Second}}},
		{"unavailable for good", always(attemptsMax + 1)},
	}}
	r.Expect = len(r.Scenarios)
	return r
}

// scriptJSON is the form of a script in JSON; a nil pointer stands for a missing
// member.
type scriptJSON struct {
	Name             string  `json:"name"`
	Expect           *int    `json:"expect"`
	OperationPointer *string `json:"operation_pointer"`
	AttemptsMax      int     `json:"attempts_max"`
	Quiet            string  `json:"quiet"`
	Scenarios        []struct {
		Name  string            `json:"name"`
		Sends []json.RawMessage `json:"sends"`
	} `json:"scenarios"`
}

// ParseScript reads a script, which is JSON:
//
//	{"name": "mine", "expect": 2, "operation_pointer": "/reference",
//	 "attempts_max": 20, "quiet": "2s",
//	 "scenarios": [
//	  {"name": "the answer is lost", "sends": ["drop-after"]},
//	  {"name": "refused", "sends": ["503:2", "none",
//	    {"fault": "402", "header": {"Content-Type": "application/problem+json"},
//	     "body": "{}", "location": "", "delay": "1s"}]}]}
//
// A send is a fault in the spelling of [mockserver.ParseFault], or "none", or an
// object with more of the fault. Only scenarios are needed: then expect is their
// number, and the pointer /reference. An error is one line and names the place.
func ParseScript(text []byte) (Script, error) {
	var script scriptJSON
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&script); err != nil {
		return Script{}, fmt.Errorf("referee: script: %s", oneLine(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("referee: script: there is more behind the JSON object")
	}
	r := Script{Name: script.Name, AttemptsMax: script.AttemptsMax, OperationPointer: "/reference", Expect: len(script.Scenarios)}
	if script.OperationPointer != nil {
		r.OperationPointer = *script.OperationPointer
	}
	if script.Expect != nil {
		r.Expect = *script.Expect
	}
	if script.Quiet != "" {
		quiet, err := time.ParseDuration(script.Quiet)
		if err != nil {
			return Script{}, fmt.Errorf("referee: script: quiet %q is not a duration such as 2s", script.Quiet)
		}
		r.Quiet = quiet
	}
	for i, scenario := range script.Scenarios {
		played := Scenario{Name: scenario.Name}
		for j, send := range scenario.Sends {
			fault, err := parseSend(send)
			if err != nil {
				return Script{}, fmt.Errorf("referee: script: scenario %d, send %d: %s", i+1, j+1, bareText(err))
			}
			played.Faults = append(played.Faults, fault)
		}
		r.Scenarios = append(r.Scenarios, played)
	}
	if err := r.Validate(); err != nil {
		return Script{}, err
	}
	return r, nil
}

// parseSend parses one entry of a scenario: a text (the fault alone), or an object. The error does not name the place; ParseScript adds it.
func parseSend(text json.RawMessage) (mockserver.Fault, error) {
	var send struct {
		Fault    string            `json:"fault"`
		Header   map[string]string `json:"header"`
		Body     string            `json:"body"`
		Location string            `json:"location"`
		Delay    string            `json:"delay"`
	}
	if err := json.Unmarshal(text, &send.Fault); err != nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&send); err != nil {
			return mockserver.Fault{}, errors.New(oneLine(err))
		}
	}
	var fault mockserver.Fault
	var err error
	if send.Fault != mockserver.None.String() {
		if fault, err = mockserver.ParseFault(send.Fault); err != nil {
			return mockserver.Fault{}, err
		}
	}
	if send.Delay != "" {
		if fault.Delay, err = time.ParseDuration(send.Delay); err != nil {
			return mockserver.Fault{}, fmt.Errorf("%q is not a duration such as 1s", send.Delay)
		}
	}
	for name, value := range send.Header {
		if fault.Header == nil {
			fault.Header = http.Header{}
		}
		fault.Header.Set(name, value)
	}
	fault.Body, fault.Location = send.Body, send.Location
	return fault, fault.Validate()
}

// Validate returns the first mistake of the script as one line, or nil.
func (r Script) Validate() error {
	switch {
	case len(r.Scenarios) == 0:
		return errors.New("referee: script: no scenarios")
	case len(r.Scenarios) > scenariosMax:
		return fmt.Errorf("referee: script: %d scenarios, more than %d", len(r.Scenarios), scenariosMax)
	case r.Expect < 0 || r.AttemptsMax < 0 || r.Quiet < 0:
		return errors.New("referee: script: expect, attempts_max and quiet cannot be negative")
	case r.OperationPointer != "" && !strings.HasPrefix(r.OperationPointer, "/"):
		return fmt.Errorf("referee: script: %q is not a JSON pointer, which starts with a slash", r.OperationPointer)
	}
	for i, scenario := range r.Scenarios {
		if len(scenario.Faults) > scriptSendMax {
			return fmt.Errorf("referee: script: scenario %d has more than %d sends", i+1, scriptSendMax)
		}
		for j, fault := range scenario.Faults {
			if err := fault.Validate(); err != nil {
				return fmt.Errorf("referee: script: scenario %d, send %d: %s", i+1, j+1, bareText(err))
			}
		}
	}
	return nil
}

// withDefaults returns the script with AttemptsMax and Quiet filled in.
func (r Script) withDefaults() Script {
	if r.AttemptsMax == 0 {
		r.AttemptsMax = attemptsMax
	}
	if r.Quiet == 0 {
		r.Quiet = quietDelay
	}
	return r
}

// bareText returns the text of an error without the prefix "mockserver: ".
func bareText(err error) string { return strings.TrimPrefix(oneLine(err), "mockserver: ") }

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
