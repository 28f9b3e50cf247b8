package crash_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
)

// hopPolicy is a policy under which a hop is soon asked again.
func hopPolicy() oncehttp.Policy {
	return oncehttp.Policy{MinDelay: 20 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxElapsed: time.Minute, AttemptTimeout: 10 * time.Second}
}

// hop is one service of the chain, in a process of its own. The test keeps its listener, so that requests wait while
// the process is started again.
type hop struct {
	dir, next string
	listener  *os.File
	cmd       *exec.Cmd
}

// start starts the process.
func (h *hop) start(t *testing.T) {
	h.cmd = exec.Command(os.Args[0], "-test.run=^TestChainChild$", "-test.timeout=2m")
	h.cmd.Env = append(os.Environ(), crashEnv+"=hop", crashEnv+"_PATH="+h.dir, crashEnv+"_URL="+h.next)
	h.cmd.ExtraFiles = []*os.File{h.listener}
	if err := h.cmd.Start(); err != nil {
		t.Error(err)
	}
}

// kill is kill -9.
func (h *hop) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// chain is so many hops, each of which calls the next. It returns the URL of the first.
func chain(t *testing.T, n int) (hops []*hop, url string) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		file, err := listener.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		h := &hop{dir: t.TempDir(), next: url, listener: file}
		url = "http://" + listener.Addr().String()
		t.Cleanup(func() {
			h.kill()
			_, _ = file.Close(), listener.Close()
		})
		h.start(t)
		hops = append([]*hop{h}, hops...)
	}
	return hops, url
}

// TestChainChild is one hop: it calls the next one under a child of the key that it was called with, has its own effect,
// and loses every third answer, at random.
func TestChainChild(t *testing.T) {
	t.Parallel()
	dir, next := os.Getenv(crashEnv+"_PATH"), os.Getenv(crashEnv+"_URL")
	if os.Getenv(crashEnv) != "hop" {
		return
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := oncehttp.Open(filepath.Join(dir, "journal.db"), oncehttp.Config{Retry: hopPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	principal := func(*http.Request) string { return "the hop before" }
	_ = http.Serve(listener, oncehttp.InheritKey(principal)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := oncehttp.InheritedKey(r.Context())
		if err := work(client, next, key, dir); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if rand.IntN(3) == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	})))
}

// work calls the next hop, if there is one, and then has the effect: a file that is named after the key.
func work(client *oncehttp.Client, next string, key oncehttp.Key, dir string) error {
	if next != "" {
		req, err := http.NewRequest("POST", next, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		resp, err := client.DoKey(req, key.Derive("next"))
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("the next hop says %s", resp.Status)
		}
	}
	file, err := os.OpenFile(filepath.Join(dir, "effect-"+string(key)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// TestChainCrash: four hops, each loses answers, and the middle ones are killed again and again: each order has one
// effect at each hop, since every process makes the same child of the same key.
func TestChainCrash(t *testing.T) {
	t.Parallel()
	const orders, kills = 8, 6
	hops, url := chain(t, 4)
	client, err := oncehttp.Open(filepath.Join(t.TempDir(), "shop.db"), oncehttp.Config{Retry: hopPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var wg sync.WaitGroup
	for i := range orders {
		wg.Go(func() {
			resp, err := client.DoKey(clienttest.Request(t, "POST", url, "{}"), oncehttp.NewScope("order").Key(fmt.Sprint(i)))
			if err != nil || resp.StatusCode != http.StatusCreated {
				t.Errorf("order %d: %v, error %v", i, resp, err)
				return
			}
			resp.Body.Close()
		})
	}
	for i := range kills {
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		middle := hops[1+i%2]
		middle.kill()
		middle.start(t)
	}
	wg.Wait()
	for i, h := range hops {
		if effects, err := filepath.Glob(filepath.Join(h.dir, "effect-*")); err != nil || len(effects) != orders {
			t.Errorf("hop %d: %d effects of %d orders, error %v", i, len(effects), orders, err)
		}
	}
}
