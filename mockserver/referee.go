package mockserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Referee is a hard server: what it does to each operation of a client, and
// when the game is over. The zero value plays nothing; start from
// [DefaultReferee] or [ParseReferee]. See Config.Referee.
type Referee struct {
	// Name is for the report.
	Name string
	// Expect is how many operations the client is going to send. Once so many
	// have been seen and it has been quiet, Finished is closed. Zero: only
	// POST /_finish or the program ends it.
	Expect int
	// OperationPointer identifies an operation, as Config's, over which it
	// takes precedence. Empty: Config's.
	OperationPointer string
	// AttemptsMax is how many sends of one operation are within reason.
	// Zero: 20.
	AttemptsMax int
	// Quiet is how long nothing may arrive before the game is over. An
	// operation without an answer holds it up fifteen times as long, since its
	// client may be waiting. Zero: 2 s.
	Quiet time.Duration
	// Scenarios are what operations meet, in the order in which they first
	// appear, and from the start again when there are more of them.
	Scenarios []Scenario
}

// Scenario is what one operation meets: the n-th send the n-th fault, and every
// later one a server that behaves.
type Scenario struct {
	Name   string
	Faults []Fault
}

const (
	attemptsMax   = 20
	quietDelay    = 2 * time.Second
	patience      = 15
	scenariosMax  = 10_000
	scriptSendMax = 10_000
)

// problemHeader makes an answer one that Draft07 reads as final.
func problemHeader() http.Header { return http.Header{"Content-Type": {problemType}} }

// DefaultReferee is the script that is played where none is given: one
// operation per situation in which clients go wrong, 17 in all.
func DefaultReferee() Referee {
	status := func(code int, wait string) Fault { return Fault{Kind: Answer, Status: code, RetryAfter: wait} }
	final := func(code int) Fault {
		return Fault{Kind: Answer, Status: code, Header: problemHeader(), Body: `{"type":"about:blank","title":"refused"}`}
	}
	always := func(n int) (faults []Fault) {
		for range n {
			faults = append(faults, status(503, ""))
		}
		return faults
	}
	r := Referee{Name: "default", OperationPointer: "/reference", Scenarios: []Scenario{
		{"nothing goes wrong", nil},
		{"the answer is lost", []Fault{{Kind: DropAfter}}},
		{"unavailable five times (first of three)", always(5)},
		{"the request is lost", []Fault{{Kind: DropBefore}}},
		{"in progress, wait 2 s", []Fault{status(409, "2")}},
		{"unavailable five times (second of three)", always(5)},
		{"too many requests, wait 1 s", []Fault{status(429, "1")}},
		{"failed once", []Fault{status(500, "")}},
		{"failed after the effect", []Fault{{Kind: AnswerAfter, Status: 500}}},
		{"refused for good", []Fault{final(402)}},
		{"the key belongs to another request", []Fault{final(422)}},
		{"the answer's body is cut off", []Fault{{Kind: CutBody}}},
		{"the connection is reset after the effect", []Fault{{Kind: ResetAfter}}},
		{"unavailable five times (third of three)", always(5)},
		{"slow", []Fault{{Delay: 3 * time.Second}}},
		{"slow, then gone", []Fault{{Kind: HangAfter, Delay: 3 * time.Second}}},
		{"unavailable for good", always(attemptsMax + 1)},
	}}
	r.Expect = len(r.Scenarios)
	return r
}

// scriptJSON is the file that ParseReferee reads.
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

// ParseReferee reads a script, which is JSON:
//
//	{"name": "mine", "expect": 2, "operation_pointer": "/reference",
//	 "attempts_max": 20, "quiet": "2s",
//	 "scenarios": [
//	  {"name": "the answer is lost", "sends": ["drop-after"]},
//	  {"name": "refused", "sends": ["503:2", "none",
//	    {"fault": "402", "header": {"Content-Type": "application/problem+json"},
//	     "body": "{}", "location": "", "delay": "1s"}]}]}
//
// A send is a fault as [ParseFault] spells it, or "none", or an object that
// says more. Only scenarios are needed: expect is their number then, the
// pointer /reference. An error is one line that says where.
func ParseReferee(text []byte) (Referee, error) {
	var script scriptJSON
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&script); err != nil {
		return Referee{}, fmt.Errorf("mockserver: script: %s", oneLine(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Referee{}, errors.New("mockserver: script: there is more behind the JSON object")
	}
	r := Referee{Name: script.Name, AttemptsMax: script.AttemptsMax, OperationPointer: "/reference", Expect: len(script.Scenarios)}
	if script.OperationPointer != nil {
		r.OperationPointer = *script.OperationPointer
	}
	if script.Expect != nil {
		r.Expect = *script.Expect
	}
	if script.Quiet != "" {
		quiet, err := time.ParseDuration(script.Quiet)
		if err != nil {
			return Referee{}, fmt.Errorf("mockserver: script: quiet %q is not a duration such as 2s", script.Quiet)
		}
		r.Quiet = quiet
	}
	for i, scenario := range script.Scenarios {
		played := Scenario{Name: scenario.Name}
		for j, send := range scenario.Sends {
			fault, err := parseSend(send)
			if err != nil {
				return Referee{}, fmt.Errorf("mockserver: script: scenario %d, send %d: %s", i+1, j+1, bareText(err))
			}
			played.Faults = append(played.Faults, fault)
		}
		r.Scenarios = append(r.Scenarios, played)
	}
	if err := r.Validate(); err != nil {
		return Referee{}, err
	}
	return r, nil
}

// parseSend reads one entry of a scenario.
func parseSend(text json.RawMessage) (Fault, error) {
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
			return Fault{}, errors.New(oneLine(err))
		}
	}
	var fault Fault
	var err error
	if send.Fault != None.String() {
		if fault, err = ParseFault(send.Fault); err != nil {
			return Fault{}, err
		}
	}
	if send.Delay != "" {
		if fault.Delay, err = time.ParseDuration(send.Delay); err != nil {
			return Fault{}, fmt.Errorf("%q is not a duration such as 1s", send.Delay)
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

// Validate says what is wrong with the script, in one line, or nil.
func (r Referee) Validate() error {
	switch {
	case len(r.Scenarios) == 0:
		return errors.New("mockserver: script: no scenarios")
	case len(r.Scenarios) > scenariosMax:
		return fmt.Errorf("mockserver: script: %d scenarios, more than %d", len(r.Scenarios), scenariosMax)
	case r.Expect < 0 || r.AttemptsMax < 0 || r.Quiet < 0:
		return errors.New("mockserver: script: expect, attempts_max and quiet cannot be negative")
	case r.OperationPointer != "" && !strings.HasPrefix(r.OperationPointer, "/"):
		return fmt.Errorf("mockserver: script: %q is not a JSON pointer, which starts with a slash", r.OperationPointer)
	}
	for i, scenario := range r.Scenarios {
		if len(scenario.Faults) > scriptSendMax {
			return fmt.Errorf("mockserver: script: scenario %d has more than %d sends", i+1, scriptSendMax)
		}
		for j, fault := range scenario.Faults {
			if err := fault.Validate(); err != nil {
				return fmt.Errorf("mockserver: script: scenario %d, send %d: %s", i+1, j+1, bareText(err))
			}
		}
	}
	return nil
}

// withDefaults fills in the zero values.
func (r Referee) withDefaults() Referee {
	if r.AttemptsMax == 0 {
		r.AttemptsMax = attemptsMax
	}
	if r.Quiet == 0 {
		r.Quiet = quietDelay
	}
	return r
}

// bareText is the error without the package's name, to be put into another.
func bareText(err error) string { return strings.TrimPrefix(oneLine(err), "mockserver: ") }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
