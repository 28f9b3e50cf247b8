package audit_test

import (
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditOfKeys: with KEY only those operations are compared, as journal list selects them; rows of the others are not foreign, and those of nobody are.
func TestAuditOfKeys(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 12)
	export := commandtest.WriteFile(t, "export.csv", "order\n1\n2\n2\n77\n")
	for name, c := range map[string]struct {
		keys []string
		want []string
	}{
		"a pattern":  {[]string{"o:1*"}, []string{"missing idemp:o:10", "missing idemp:o:11", "missing idemp:o:12", "foreign "}},
		"two keys":   {[]string{"idemp:o:1", "o:2"}, []string{"twice idemp:o:2", "foreign "}},
		"no prefix":  {[]string{"o:1"}, []string{"foreign "}},
		"everything": {[]string{"*:?"}, []string{"twice idemp:o:2", "missing idemp:o:3", "missing idemp:o:4", "missing idemp:o:5", "missing idemp:o:6", "missing idemp:o:7", "missing idemp:o:8", "missing idemp:o:9", "foreign "}},
	} {
		all, _ := findings(t, terminal.ExitFindings, append(c.keys, "--journal", j, "--against", export)...)
		var got []string
		for _, f := range all {
			got = append(got, f.Finding+" "+f.Key)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
	run := func(keys ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"audit", "--journal", j, "--match", "order", "--reference", "/order", "--against", export}, keys...)...)
	}
	if got := run("feb.csv").Want(t, terminal.ExitUsage); got.Err != `oncehttp: no operation of the journal has a key such as "feb.csv"; each export needs --against before its name`+"\n" {
		t.Errorf("stderr %q", got.Err)
	}
	run("1").Usage(t, `oncehttp: no operation of the journal has a key such as "1"; there is "idemp:o:1"`) // 10 to 12 do not end so
	run("o:[").Usage(t, `oncehttp: "o:[" is no pattern of keys: *, ? and [a-z] stand for characters`)
}
