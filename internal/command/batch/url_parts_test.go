package batch

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/input"
)

// {field} in --url is filled from the row, encoded for its place, and can lead
// nowhere else.
func TestURLTemplate(t *testing.T) {
	t.Parallel()
	needs := input.RowNeeds{Fields: []string{"id"}}
	u, err := parseURLTemplate("http://h/v1/{id}/capture?ref={ref}&x=1", &needs)
	if err != nil || strings.Join(needs.Fields, ",") != "id,ref" {
		t.Fatalf("%v, fields %q", err, needs.Fields)
	}
	got, err := u.fill([]string{"a/b c", "x&y=z"})
	if err != nil || got.String() != "http://h/v1/a%2Fb%20c/capture?ref=x%26y%3Dz&x=1" {
		t.Errorf("%v, %v", got, err)
	}
	for _, dots := range []string{".", ".."} {
		if _, err := u.fill([]string{dots, "r"}); err == nil {
			t.Errorf("%q leads elsewhere", dots)
		}
	}
	for _, bad := range []string{"http://{host}/x", "http://h{id}/", "http://h/{}", "http://h/{a", "http://h/a}", "http://h/{a{b}}", "{id}", "ftp://h/{id}"} {
		if _, err := parseURLTemplate(bad, new(input.RowNeeds)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
