package house_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeProgram: the program of README compiles, and says of each answer what it is: a 402 is not a payment.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("README.md has no program")
	}
	status := make(chan int, 1)
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(<-status)
		_, _ = rw.Write([]byte("{}"))
	}))
	t.Cleanup(api.Close)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(strings.ReplaceAll(string(found[1]), "http://127.0.0.1:8080", api.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for code, want := range map[int]string{http.StatusCreated: "paid:", http.StatusAccepted: "taken on", http.StatusPaymentRequired: "refused;"} {
		status <- code
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = t.TempDir() // of its journal
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("after a %d it says %q, error %v; want %q", code, out, err, want)
		}
	}
}
