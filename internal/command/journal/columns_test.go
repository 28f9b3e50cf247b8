package journal_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// list and stuck show chosen columns, of the record and of its request, and of a pruned request what was kept.
func TestJournalColumns(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	file := commandtest.WriteFile(t, "in.csv", "id,amount,supplier\na/1,12.50,\"Ann\nand Bob\"\nb,7,\n")
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}", "--max-attempts", "1", "--workers", "1")...).Want(t, terminal.ExitUnknown)
	j := file + ".oncehttp.db"
	rows := func(args ...string) []string {
		out := commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", j)...).Want(t, terminal.ExitOK).Out
		return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	}
	got := rows("list", "--columns", "state,amount,/supplier,none", "--format", "csv")
	if want := "state,amount,supplier,none|pending,12.50,Ann and Bob,-|confirmed,7,-,-"; strings.Join(got, "|") != want {
		t.Errorf("list: %q", got)
	}
	// The key is KEY@SEEN in chosen columns of either format; all columns of CSV have it beside the bare key.
	seen := commandtest.SeenAs(t, j, "idemp:o:a%2F1")
	for args, want := range map[string]string{
		"--columns key --format csv": seen, "--columns key": seen, "--columns seen --format csv": seen, "--columns key,state --format csv": seen + ",pending",
	} {
		if got := rows(append([]string{"list", "o:a/1"}, strings.Fields(args)...)...); got[1] != want {
			t.Errorf("list %s: %q, want %q", args, got[1], want)
		}
	}
	if got := rows("list", "o:a/1", "--format", "csv"); !strings.HasPrefix(got[1], "idemp:o:a%2F1,") || !strings.HasSuffix(got[1], ","+seen) {
		t.Errorf("list: %q", got)
	}
	for args, want := range map[string]string{ // a name that no request has is told of
		"list --columns amuont,amount": `--columns "amuont": no request of the 2 listed operations has it`, "stuck --columns /suplier": `--columns "/suplier": no request of the 1 listed operation has it`,
		"list --columns amount,supplier,age": "", "list nobody --columns amuont": "", "stuck --columns amuont --quiet": "",
	} {
		said := commandtest.Run(t, append(append([]string{"journal"}, strings.Fields(args)...), "--journal", j)...).Want(t, terminal.ExitOK).Err
		if !strings.Contains(said, want) || want == "" && strings.Contains(said, "--columns") {
			t.Errorf("%s says %q, want %q", args, said, want)
		}
	}
	if got = rows("stuck", "--columns", "amount,sent,next_attempt"); len(got) != 2 || strings.Fields(got[0])[0] != "AMOUNT" || strings.Fields(got[1])[0] != "12.50" {
		t.Errorf("stuck: %q", got)
	}
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	if got = rows("list", "*:b", "--columns", "amount", "--format", "csv"); got[1] != "7" {
		t.Errorf("pruned: %q", got)
	}
	commandtest.Run(t, "journal", "list", "--columns", "key", "--json", "--journal", j).Usage(t,
		"oncehttp: --columns is for --format table and csv; JSON has everything")
	commandtest.Run(t, "journal", "stuck", "--columns", "key,,a", "--journal", j).Usage(t, `oncehttp: --columns "key,,a": an empty name`)

	for _, text := range []string{"idemp:o:a%2F1", "o:a%2F1", "o:a/1", "idemp:o:a/1"} {
		if got := rows("show", text); got[0] != "idemp:o:a%2F1" {
			t.Errorf("show %s: %q", text, got)
		}
		if got := rows("list", text); len(got) != 2 {
			t.Errorf("list %s: %q", text, got)
		}
	}
	if got := rows("stuck", "o:a/*"); len(got) != 2 {
		t.Errorf("stuck with a pattern: %q", got)
	}
	commandtest.Run(t, "journal", "settle", "o:a/1", "--happened", "--journal", j).Usage(t,
		`oncehttp: journal `+j+`: no operation has the key "o:a/1"; there is "idemp:o:a%2F1"`)
	if got := rows("stuck"); !strings.Contains(got[1], "the server closed the connection without an answer") {
		t.Errorf("stuck: %q has not the whole reason", got)
	}
	commandtest.Run(t, "journal", "show", "o:a", "--journal", j).Usage(t, `oncehttp: journal `+j+`: no operation has the key "o:a"`)
}
