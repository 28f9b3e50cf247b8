package main

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

// {field} in --url is filled from the row, encoded for its place, and can lead
// nowhere else.
func TestURLTemplate(t *testing.T) {
	t.Parallel()
	fields := []string{"id"}
	u, err := parseURLTemplate("http://h/v1/{id}/capture?ref={ref}&x=1", &fields)
	if err != nil || strings.Join(fields, ",") != "id,ref" {
		t.Fatalf("%v, fields %q", err, fields)
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
		if _, err := parseURLTemplate(bad, new([]string)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// The same rows in every packing give the same keys and the same bytes.
func TestBatchReadsWhatThereIs(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	plainRows := "id,what\n1,a\n2,b\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(plainRows))
	_ = z.Close()
	journal := journalIn(t)
	for name, c := range map[string]struct {
		text string
		args []string
	}{
		"plain": {plainRows, nil}, "gzip": {packed.String(), nil}, "tsv": {"id\twhat\n1\ta\n2\tb\n", nil},
		"semicolons": {"id;what\n1;a\n2;b\n", []string{"--delimiter", ";"}},
	} {
		file := writeFile(t, "in", c.text)
		got := run(t, append([]string{"batch", file, "--url", m.URL() + "/payments", "--key", "o:{id}", "--journal", journal}, c.args...)...).want(t, exitOK)
		if n := len(got.lines(t)); n != 2 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
	if n := m.Ledger().Snapshot().Sends; n != 2 {
		t.Errorf("%d sends of the same two rows", n)
	}
	broken := writeFile(t, "broken.gz", packed.String()[:packed.Len()-9])
	run(t, "batch", broken, "--url", m.URL(), "--key", "o:{id}").want(t, exitUsage)
}

// --dry-run checks everything, shows requests and sends nothing; all faults of an
// input are said at once.
func TestBatchDryRunAndAllFaults(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	file := writeFile(t, "in.csv", "id,amount\n1,10\n2,20\n1,10\n")
	args := []string{"batch", file, "--url", s.url + "/pay/{id}", "--key", "o:{id}", "--number", "amount", "-H", "Authorization: Bearer hidden", "--dry-run"}
	got := run(t, args...).want(t, exitOK)
	if want := `{"row":1,"key":"idemp:o:1","method":"POST","url":"` + s.url + `/pay/1","headers":["Authorization","Content-Type"],"body":{"id":"1","amount":10}}`; !strings.HasPrefix(got.out, want+"\n") || strings.Contains(got.out+got.err, "hidden") {
		t.Errorf("stdout %q, stderr %q", got.out, got.err)
	}
	if !strings.Contains(got.err, "3 rows: 2 new, 1 duplicate; 2 would be sent; nothing was sent") {
		t.Errorf("stderr %q", got.err)
	}
	file = writeFile(t, "bad.csv", "id,amount\n1,ten\n,20\n3,30,3\n4,40\n4,41\n")
	args[1] = file
	got = run(t, args...).want(t, exitUsage)
	want := []string{
		`row 1 (line 2), column "amount": "ten" is not a JSON number`, `row 2 (line 3), column "id": is empty, and the key needs it`,
		"row 3 (line 4): has another number of fields than the header", "3 faults; nothing was sent",
	}
	lines := strings.Split(strings.TrimSpace(got.err), "\n")
	if len(lines) != len(want) {
		t.Fatalf("stderr\n%s", got.err)
	}
	for i, line := range lines {
		if line != "oncehttp: "+file+": "+want[i] {
			t.Errorf("got %q, want %q", line, want[i])
		}
	}
}
