package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Without --keep-field a batch keeps the key's fields and what most audits ask for, as
// far as it may and as there is room.
func TestKeepFieldDefaults(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 122)
	for _, c := range []struct{ given, fields, want []string }{
		{nil, []string{"user", "order/id"}, []string{"/user", "/order~1id", "/reference", "/amount", "/currency"}},
		{nil, []string{"amount", "apiToken"}, []string{"/amount", "/reference", "/currency"}},
		{nil, []string{long}, []string{"/" + long}},
		{nil, strings.Split("abcdefghi", ""), strings.Split("/a /b /c /d /e /f /g /h", " ")},
		{[]string{"/x"}, []string{"user"}, []string{"/x"}},
		{[]string{"none"}, []string{"user"}, nil},
	} {
		got, err := session.ParseKeepFields(c.given, session.BatchKeepFields(c.fields))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q with the fields %q: %q, %v; want %q", c.given, c.fields, got, err, c.want)
		}
	}
}

// What cannot or must not be kept is refused before anything is sent.
func TestKeepFieldUsage(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	file := commandtest.WriteFile(t, "in.csv", "order\n1\n")
	for pointer, want := range map[string]string{
		"amount":      `--keep-field: "amount" is not a JSON pointer, such as /amount`,
		"/card_token": `--keep-field: "/card_token" is called like a credential, which no journal keeps`,
	} {
		commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}", "--keep-field", pointer).Usage(t, "oncehttp: "+want)
		commandtest.Run(t, "send", s.URL, "-d", "{}", "--keep-field", pointer).Usage(t, "oncehttp: "+want)
	}
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}", "--keep-field", "none", "--keep-field", "/a").
		Usage(t, `oncehttp: --keep-field: "none" is not a JSON pointer, such as /amount`)
}

// What is kept is shown with the bodies only, since it is a part of them, and survives
// a prune and a compact.
func TestKeepFieldShown(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t)
	commandtest.Prune(t, j)
	commandtest.Run(t, "journal", "compact", "--journal", j).Want(t, terminal.ExitOK)
	for args, want := range map[string]string{
		"show idemp:o:2 --body":        "  kept      /order=2, /amount=200\n",
		"show idemp:o:2 --body --json": `"kept_fields":{"/amount":"200","/order":"2"}`,
		"export --bodies":              `"kept_fields":{"/amount":"700","/order":"7"}`,
	} {
		list := append([]string{"journal"}, strings.Fields(args)...)
		got := commandtest.Run(t, append(list, "--journal", j)...).Want(t, terminal.ExitOK)
		if !strings.Contains(got.Out, want) {
			t.Errorf("%s: %s\nwant %s", args, got.Out, want)
		}
		list = slices.DeleteFunc(list, func(arg string) bool { return arg == "--body" || arg == "--bodies" })
		got = commandtest.Run(t, append(list, "--journal", j)...).Want(t, terminal.ExitOK)
		if strings.Contains(got.Out, "kept") {
			t.Errorf("%s shows a part of a body: %s", list, got.Out)
		}
	}
}
