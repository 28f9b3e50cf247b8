package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRunningPage: docs/running.md names each alert of rules.yaml and rules-command.yaml with its severity. Neither it nor docs/security.md names a command or flag that
// does not exist.
func TestRunningPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/running.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rules.yaml", "rules-command.yaml"} {
		rules, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "(../examples/telemetry/"+name+")") {
			t.Errorf("docs/running.md does not name %s", name)
		}
		alerts := regexp.MustCompile(`(?s)- alert: (\w+).*?severity: (\w+)`).FindAllStringSubmatch(string(rules), -1)
		if len(alerts) < 8 {
			t.Fatalf("%s: %d alerts", name, len(alerts))
		}
		for _, a := range alerts {
			if !strings.Contains(string(page), "\n| `"+a[1]+"` | "+a[2]+" |") {
				t.Errorf("docs/running.md does not say what to do for %s of %s, a %s", a[1], name, a[2])
			}
		}
	}
	security, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	page = append(page, security...)
	commands := regexp.MustCompile("(?m)(?:`|^    |-- )oncehttp ([^`\n]*)").FindAllStringSubmatch(string(page), -1)
	if len(commands) < 10 {
		t.Errorf("%d commands on the page", len(commands))
	}
	texts := map[string]string{}
	for _, found := range commands {
		words := strings.Fields(found[1])
		path := words[:1]
		if words[0] == "journal" && len(words) > 1 {
			path = words[:2]
		}
		of := strings.Join(path, " ")
		if texts[of] == "" {
			texts[of] = help(t, path...)
		}
		for _, word := range words {
			if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "--") && !hasFlag(texts[of], flag) {
				t.Errorf("oncehttp %s has no flag %s", of, flag)
			}
		}
	}
}
