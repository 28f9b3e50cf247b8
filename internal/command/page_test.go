package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// pageRun runs the commands of a page of docs/ in a folder of its own. On the page, a block "json NAME" or "csv NAME" is a
// file, and a block "console" holds commands behind "$ " with what they print, a line "…" standing for any lines. A mock
// that ends in "&" runs until the next one, wherever the page says that it listens.
type pageRun struct {
	dir    string
	files  []string
	listen string // as the page says
	url    string // as it is
	stop   func() commandtest.Ran
}

// A page that somebody follows: every command on it prints what the page says.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, commands := range map[string]int{"my-api.md": 13, "keys.md": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../docs/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if ran := runPage(t, string(text)); ran != commands {
				t.Errorf("%d commands, want %d: count them anew, or the page was not read", ran, commands)
			}
		})
	}
}

// runPage runs the commands of a page, and returns how many there are.
func runPage(t *testing.T, text string) (commands int) {
	p := &pageRun{dir: commandtest.ShortDir(t)}
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+) ?(\\S*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		switch kind, name, body := block[1], block[2], block[3]; {
		case name != "":
			commandtest.WriteFile(t, filepath.Join(p.dir, name), body)
			p.files = append(p.files, name)
		case kind == "console":
			for _, command := range strings.Split("\n"+body, "\n$ ")[1:] {
				p.command(t, command)
				commands++
			}
		}
	}
	if p.stop != nil {
		p.stop()
	}
	return commands
}

// command runs one command, with the lines that it should print behind it.
func (p *pageRun) command(t *testing.T, text string) {
	t.Helper()
	line, want, _ := strings.Cut(strings.ReplaceAll(text, "\\\n", " "), "\n")
	args := argumentsOf(line)
	background := args[len(args)-1] == "&"
	var target string
	if i := slices.Index(args, ">"); i > 0 {
		target, args = args[i+1], args[:i]
	}
	for i, arg := range args {
		if name := strings.TrimPrefix(arg, "./"); strings.HasSuffix(name, ".db") || slices.ContainsFunc(p.files, func(f string) bool { return strings.HasPrefix(name, f) }) {
			args[i] = filepath.Join(p.dir, name)
		}
		if p.listen != "" {
			args[i] = strings.ReplaceAll(args[i], p.listen, p.url)
		}
	}
	if background {
		p.serve(t, args, want)
		return
	}
	var out sharedBuffer
	status := command.Run(t.Context(), args[1:], strings.NewReader(""), &out, &out)
	got := out.String()
	if target != "" {
		commandtest.WriteFile(t, filepath.Join(p.dir, target), got)
		p.files, got = append(p.files, target), ""
	}
	if status != terminal.ExitOK {
		got += fmt.Sprintf("exit status %d\n", status)
	}
	got = strings.ReplaceAll(strings.ReplaceAll(got, p.dir+string(filepath.Separator), ""), p.url, p.listen)
	if !printed(strings.TrimSpace(want), strings.TrimSpace(got)) {
		t.Errorf("$ %s\n%s\nthe page says\n%s", line, got, want)
	}
}

// serve starts a mock in place of the one before.
func (p *pageRun) serve(t *testing.T, args []string, want string) {
	t.Helper()
	if p.stop != nil {
		p.stop()
	}
	i := slices.Index(args, "--addr")
	if args[1] != "mock" || i < 0 || strings.TrimSpace(want) != "listening on http://"+args[i+1] {
		t.Fatalf("%q prints %q; want a mock with --addr that says where it listens", args, want)
	}
	p.listen, args[i+1] = "http://"+args[i+1], "127.0.0.1:0"
	m := commandtest.StartCommand(t, args[2:len(args)-1]...)
	p.url, p.stop = m.URL, m.Stop
}

// printed reports whether got is what the page says.
func printed(want, got string) bool {
	parts := strings.Split(regexp.QuoteMeta(want), "…")
	return regexp.MustCompile(`\A` + strings.Join(parts, `(?s:.*)`) + `\z`).MatchString(got)
}

// argumentsOf splits a command line at its blanks, outside single quotes.
func argumentsOf(line string) []string {
	var list []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list[len(list)-1] += part
			continue
		}
		fields := strings.Fields(part)
		if i > 0 && part != "" && part[0] != ' ' && len(fields) > 0 { // it goes on behind the quotes
			list[len(list)-1], fields = list[len(list)-1]+fields[0], fields[1:]
		}
		list = append(list, fields...)
		if strings.HasSuffix(part, " ") {
			list = append(list, "") // what the next quotes begin
		}
	}
	return slices.DeleteFunc(list, func(word string) bool { return word == "" })
}

// sharedBuffer is stdout and stderr at once, as a terminal shows them.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *sharedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String is what was written.
func (s *sharedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
