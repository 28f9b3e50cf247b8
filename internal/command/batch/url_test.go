package batch_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// The same rows in every packing give the same keys and the same bytes.
func TestBatchReadsWhatThereIs(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	plainRows := "id,what\n1,a\n2,b\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(plainRows))
	_ = z.Close()
	journal := commandtest.JournalIn(t)
	for name, c := range map[string]struct {
		text string
		args []string
	}{
		"plain": {plainRows, nil}, "gzip": {packed.String(), nil}, "tsv": {"id\twhat\n1\ta\n2\tb\n", nil},
		"semicolons": {"id;what\n1;a\n2;b\n", []string{"--delimiter", ";"}},
	} {
		file := commandtest.WriteFile(t, "in", c.text)
		got := commandtest.Run(t, append([]string{"batch", file, "--url", m.URL() + "/payments", "--key", "o:{id}", "--journal", journal}, c.args...)...).Want(t, terminal.ExitOK)
		if n := len(got.Lines(t)); n != 2 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
	if n := m.Ledger().Snapshot().Sends; n != 2 {
		t.Errorf("%d sends of the same two rows", n)
	}
	broken := commandtest.WriteFile(t, "broken.gz", packed.String()[:packed.Len()-9])
	commandtest.Run(t, "batch", broken, "--url", m.URL(), "--key", "o:{id}").Want(t, terminal.ExitUsage)
}

// --dry-run checks everything, shows requests and sends nothing; all faults of an
// input are said at once.
func TestBatchDryRunAndAllFaults(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	file := commandtest.WriteFile(t, "in.csv", "id,amount\n1,10\n2,20\n1,10\n")
	args := []string{"batch", file, "--url", s.URL + "/pay/{id}", "--key", "o:{id}", "--number", "amount", "-H", "Authorization: Bearer hidden", "--dry-run"}
	got := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	if want := `{"row":1,"key":"idemp:o:1","method":"POST","url":"` + s.URL + `/pay/1","headers":["Authorization","Content-Type"],"body":{"id":"1","amount":10}}`; !strings.HasPrefix(got.Out, want+"\n") || strings.Contains(got.Out+got.Err, "hidden") {
		t.Errorf("stdout %q, stderr %q", got.Out, got.Err)
	}
	if !strings.Contains(got.Err, "3 rows: 2 new, 1 duplicate; 2 would be sent; nothing was sent") {
		t.Errorf("stderr %q", got.Err)
	}
	file = commandtest.WriteFile(t, "bad.csv", "id,amount\n1,ten\n,20\n3,30,3\n4,40\n4,41\n")
	args[1] = file
	got = commandtest.Run(t, args...).Want(t, terminal.ExitUsage)
	want := []string{
		`row 1 (line 2), column "amount": "ten" is not a JSON number`, `row 2 (line 3), column "id": is empty, and the key needs it`,
		"row 3 (line 4): has another number of fields than the header", "3 faults; nothing was sent",
	}
	lines := strings.Split(strings.TrimSpace(got.Err), "\n")
	if len(lines) != len(want) {
		t.Fatalf("stderr\n%s", got.Err)
	}
	for i, line := range lines {
		if line != "oncehttp: "+file+": "+want[i] {
			t.Errorf("got %q, want %q", line, want[i])
		}
	}
}
