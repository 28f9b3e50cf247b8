package mockserver_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

func TestParseFaults(t *testing.T) {
	t.Parallel()
	got, err := mockserver.ParseFaults("drop-after=0.2, reset=0.05,503=0.1,429:2=0.1,hang:30s=0.01,500-after=0.1,cut-body:9=0.1,redirect:308=0.1")
	if err != nil {
		t.Fatal(err)
	}
	want := mockserver.Mix{
		{Fault: mockserver.Fault{Kind: mockserver.DropAfter}, Probability: 0.2},
		{Fault: mockserver.Fault{Kind: mockserver.Reset}, Probability: 0.05},
		{Fault: mockserver.Fault{Kind: mockserver.Answer, Status: 503}, Probability: 0.1},
		{Fault: mockserver.Fault{Kind: mockserver.Answer, Status: 429, RetryAfter: "2"}, Probability: 0.1},
		{Fault: mockserver.Fault{Kind: mockserver.Hang, Delay: 30 * time.Second}, Probability: 0.01},
		{Fault: mockserver.Fault{Kind: mockserver.AnswerAfter, Status: 500}, Probability: 0.1},
		{Fault: mockserver.Fault{Kind: mockserver.CutBody, Bytes: 9}, Probability: 0.1},
		{Fault: mockserver.Fault{Kind: mockserver.Redirect, Status: 308}, Probability: 0.1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if empty, err := mockserver.ParseFaults("  "); err != nil || empty != nil {
		t.Errorf("blank text: got %v, %v, want nothing", empty, err)
	}
	if _, err := mockserver.ParseFaults("drop-after=0.2,drop-before=0.4,reset=0.3,503=0.1"); err != nil {
		t.Errorf("the sum is 1, but for the last binary digit: %v", err)
	}
}

func TestParseFaultsRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"drop-atfer=0.2":       "unknown name",
		"none=0.2":             "unknown name",
		"drop-after":           "NAME=PROBABILITY",
		"drop-after=x":         "not a number",
		"drop-after=1.5":       "not in 0..1",
		"drop-after=-0.1":      "not in 0..1",
		"drop-after=NaN":       "not in 0..1",
		"drop-after=Inf":       "not in 0..1",
		"reset=0.6,503=0.5":    "more than 1",
		"reset=0.1,reset=0.1":  "twice",
		"200=0.1":              "400..599",
		"600=0.1":              "400..599",
		"99999999999999=0.1":   "400..599",
		"hang:soon=0.1":        "not a duration",
		"hang:-1s=0.1":         "negative delay",
		"cut-body:many=0.1":    "number of bytes",
		"huge-error:-1=0.1":    "bytes",
		"redirect:200=0.1":     "300..399",
		"expire:1=0.1":         "no argument",
		"503:a\nb=0.1":         "visible ASCII",
		"=0.1":                 "unknown name",
		",":                    "NAME=PROBABILITY",
		"drop-after=0.1,":      "NAME=PROBABILITY",
		"answer=0.1,-after=.1": "unknown name",
	} {
		_, err := mockserver.ParseFaults(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
			continue
		}
		if line := err.Error(); strings.Contains(line, "\n") || !strings.HasPrefix(line, "mockserver: ") {
			t.Errorf("%q: %q is not one line of this package", text, line)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("drop-after=0.2,reset=0.05,503=0.1")
	f.Add("429:2=0.1,hang:30s=0.01,redirect:308=1")
	f.Add("=,:=1")
	f.Fuzz(func(t *testing.T, text string) {
		mix, err := mockserver.ParseFaults(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: the error has several lines: %q", text, err)
			}
			return
		}
		var sum float64
		for _, share := range mix {
			sum += share.Probability
		}
		if math.IsNaN(sum) || sum < 0 || sum > 1.0001 || mix.Validate() != nil {
			t.Errorf("%q: accepted with a sum of %v", text, sum)
		}
	})
}

func TestKindNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for kind := mockserver.None; kind <= mockserver.KillIdle; kind++ {
		var back mockserver.Kind
		text, err := kind.MarshalText()
		if err == nil {
			err = back.UnmarshalText(text)
		}
		if err != nil || back != kind {
			t.Errorf("%v: got %v, %v", kind, back, err)
		}
	}
	if got := mockserver.Kind(200).String(); got != "kind-200" {
		t.Errorf("got %q", got)
	}
}
