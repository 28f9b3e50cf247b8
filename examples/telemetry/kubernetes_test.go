package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"go.yaml.in/yaml/v3"
)

// The part of a manifest that the manifests of examples/kubernetes use. Any other field is an error.
type (
	workload struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			ServiceName string `yaml:"serviceName"`
			Replicas    int
			Selector    struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Template struct {
				Metadata metadata
				Spec     pod
			}
			VolumeClaimTemplates []struct {
				Metadata metadata
				Spec     struct {
					AccessModes []string `yaml:"accessModes"`
					Resources   struct{ Requests map[string]string }
				}
			} `yaml:"volumeClaimTemplates"`
		}
	}
	metadata struct {
		Name                string
		Labels, Annotations map[string]string
	}
	pod struct {
		Grace    int `yaml:"terminationGracePeriodSeconds"`
		Security struct {
			NonRoot bool                  `yaml:"runAsNonRoot"`
			User    int                   `yaml:"runAsUser"`
			Group   int                   `yaml:"runAsGroup"`
			FSGroup int                   `yaml:"fsGroup"`
			Seccomp struct{ Type string } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		Containers []container
		Volumes    []struct {
			Name   string
			Secret struct {
				SecretName string `yaml:"secretName"`
			}
			EmptyDir *struct{} `yaml:"emptyDir"`
		}
	}
	container struct {
		Name, Image string
		Args        []string
		Env         []variable
		Ports       []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		ReadinessProbe *probe `yaml:"readinessProbe"`
		LivenessProbe  *probe `yaml:"livenessProbe"`
		Resources      struct{ Requests, Limits map[string]string }
		Security       struct {
			Escalation   *bool                   `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRoot bool                    `yaml:"readOnlyRootFilesystem"`
			Capabilities struct{ Drop []string } `yaml:"capabilities"`
		} `yaml:"securityContext"`
		Lifecycle struct {
			PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
		}
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	variable struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	probe struct {
		HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
		PeriodSeconds    int                         `yaml:"periodSeconds"`
		TimeoutSeconds   int                         `yaml:"timeoutSeconds"`
		FailureThreshold int                         `yaml:"failureThreshold"`
	}
)

// manifest reads a file of examples/kubernetes into v. A field that v does not have is an error.
func manifest(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile("../kubernetes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// built is the folder of the command, if a test has built it.
var built string

// TestMain removes the command in the end.
func TestMain(m *testing.M) {
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(status)
}

// command builds the command, once.
var command = sync.OnceValues(func() (name string, err error) {
	if built, err = os.MkdirTemp("", "oncehttp"); err != nil {
		return "", err
	}
	name = filepath.Join(built, "oncehttp")
	build := exec.Command("go", "build", "-o", name, "./cmd/oncehttp")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return name, err
})

// help is the help of a command, or of a topic.
func help(t *testing.T, path ...string) string {
	t.Helper()
	name, err := command()
	if err != nil {
		t.Fatal(err)
	}
	if path = slices.Clone(path); path[0] != "help" {
		path = append(path, "--help")
	}
	out, err := exec.Command(name, path...).CombinedOutput()
	if err != nil {
		t.Fatalf("oncehttp %v: %v: %s", path, err, out)
	}
	return string(out)
}

// hasFlag reports whether the help lists a flag.
func hasFlag(help, flag string) bool {
	return regexp.MustCompile(`(?m)^ +(-\w, )?` + regexp.QuoteMeta(flag) + `( |$)|^ +` + regexp.QuoteMeta(flag) + `, --`).MatchString(help)
}

// common checks a workload: its labels match, its ports have the names that probes use, its mounts have volumes, and a pod that is told to
// stop has time for its hook and for an attempt.
func common(t *testing.T, w *workload, attempt int) container {
	t.Helper()
	spec := w.Spec.Template.Spec
	if w.APIVersion != "apps/v1" || len(w.Spec.Selector.MatchLabels) == 0 || len(spec.Containers) != 1 {
		t.Fatalf("%s: %+v", w.Kind, w)
	}
	for name, value := range w.Spec.Selector.MatchLabels {
		if w.Spec.Template.Metadata.Labels[name] != value {
			t.Errorf("%s: the pod has no label %s=%s", w.Kind, name, value)
		}
	}
	c := spec.Containers[0]
	for _, p := range []*probe{c.ReadinessProbe, c.LivenessProbe} {
		if p != nil && (len(c.Ports) != 1 || p.HTTPGet.Port != c.Ports[0].Name || p.TimeoutSeconds < 4 || p.PeriodSeconds < 1) {
			t.Errorf("%s: the probe %+v", w.Kind, p) // the command waits for its journal for 3 s
		}
	}
	for _, m := range c.VolumeMounts {
		found := false
		for _, v := range spec.Volumes {
			found = found || v.Name == m.Name && (v.Secret.SecretName != "" && m.ReadOnly || v.EmptyDir != nil)
		}
		for _, v := range w.Spec.VolumeClaimTemplates {
			found = found || v.Metadata.Name == m.Name && slices.Equal(v.Spec.AccessModes, []string{"ReadWriteOncePod"}) && v.Spec.Resources.Requests["storage"] != ""
		}
		if !found {
			t.Errorf("%s: no volume for %+v", w.Kind, m)
		}
	}
	safe := c.Security.Escalation != nil && !*c.Security.Escalation && c.Security.ReadOnlyRoot && slices.Equal(c.Security.Capabilities.Drop, []string{"ALL"})
	if !spec.Security.NonRoot || spec.Security.User == 0 || spec.Security.Seccomp.Type != "RuntimeDefault" || !safe {
		t.Errorf("%s: securityContext %+v, %+v", w.Kind, spec.Security, c.Security)
	}
	if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" || c.Resources.Limits["cpu"] != "" {
		t.Errorf("%s: resources %+v", w.Kind, c.Resources) // a CPU limit stops a process for parts of a second
	}
	if least := c.Lifecycle.PreStop.Sleep.Seconds + attempt + 10; spec.Grace < least {
		t.Errorf("%s: terminationGracePeriodSeconds is %d, want %d at least", w.Kind, spec.Grace, least)
	}
	return c
}

// TestManifests: the manifests of examples/kubernetes name no flag, variable, port or path that the command does not have, and leave it the
// time that it needs to stop; a file has one pod.
func TestManifests(t *testing.T) {
	var file, pg workload
	manifest(t, "statefulset.yaml", &file)
	c := common(t, &file, 30+10) // Retry.AttemptTimeout, and handlers of 10 s
	journal := c.Env[0].Value
	if file.Kind != "StatefulSet" || file.Spec.Replicas != 1 || file.Spec.ServiceName == "" || len(c.VolumeMounts) != 1 || !strings.HasPrefix(journal, c.VolumeMounts[0].MountPath+"/") {
		t.Errorf("the StatefulSet has %d replicas, and its journal is %s", file.Spec.Replicas, journal)
	}

	manifest(t, "deployment.yaml", &pg)
	c = common(t, &pg, 30)
	if pg.Kind != "Deployment" || c.Args[0] != "work" {
		t.Fatalf("the Deployment runs %v", c.Args)
	}
	work, topics := help(t, "work"), help(t, "help", "journals")
	for _, arg := range c.Args[1:] {
		if flag, _, _ := strings.Cut(arg, "="); !hasFlag(work, flag) {
			t.Errorf("work has no flag %s", flag)
		}
	}
	for _, v := range c.Env {
		if !strings.Contains(work+topics, v.Name) || v.ValueFrom.SecretKeyRef.Key == "" {
			t.Errorf("the help of work has no variable %s, or it is in clear", v.Name)
		}
	}
	port := pg.Spec.Template.Metadata.Annotations["prometheus.io/port"]
	if !slices.Contains(c.Args, "--listen=:"+port) || !slices.Contains(c.Args, "--attempt-timeout=30s") {
		t.Errorf("port %s, arguments %v", port, c.Args)
	}
	for _, path := range []string{c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, pg.Spec.Template.Metadata.Annotations["prometheus.io/path"]} {
		if !strings.Contains(work, "GET "+path) {
			t.Errorf("the help of work has no GET %s", path)
		}
	}
}

// TestDisruptionBudget: an eviction leaves a worker, and takes its pods by their labels.
func TestDisruptionBudget(t *testing.T) {
	var budget struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			Least    int `yaml:"minAvailable"`
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
		}
	}
	var pg workload
	manifest(t, "poddisruptionbudget.yaml", &budget)
	manifest(t, "deployment.yaml", &pg)
	if budget.APIVersion != "policy/v1" || budget.Kind != "PodDisruptionBudget" || budget.Spec.Least < 1 || budget.Spec.Least >= pg.Spec.Replicas ||
		!maps.Equal(budget.Spec.Selector.MatchLabels, pg.Spec.Selector.MatchLabels) {
		t.Errorf("%+v", budget)
	}
}

// TestProxies: the routes of Istio and Envoy for operations allow no retries.
func TestProxies(t *testing.T) {
	var istio struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   metadata
		Spec       struct {
			Hosts []string
			HTTP  []struct {
				Route []struct {
					Destination struct{ Host string }
				}
				Retries *struct{ Attempts *int }
			} `yaml:"http"`
		}
	}
	manifest(t, "istio.yaml", &istio)
	for _, route := range istio.Spec.HTTP {
		if route.Retries == nil || route.Retries.Attempts == nil || *route.Retries.Attempts != 0 || route.Route[0].Destination.Host != istio.Spec.Hosts[0] {
			t.Errorf("a route of Istio has the retries %+v", route.Retries)
		}
	}
	var envoy struct {
		Name    string
		Domains []string
		Removed []string `yaml:"request_headers_to_remove"`
		Routes  []struct {
			Match struct{ Prefix string }
			Route struct{ Cluster, Timeout string } // a retry_policy would be an unknown field
		}
	}
	manifest(t, "envoy-route.yaml", &envoy)
	if !slices.Contains(envoy.Removed, "x-envoy-retry-on") || len(envoy.Routes) != 1 {
		t.Errorf("Envoy: %+v", envoy)
	}
	if d, err := time.ParseDuration(envoy.Routes[0].Route.Timeout); err != nil || d <= 30*time.Second {
		t.Errorf("Envoy gives up after %v, before an attempt does", d)
	}
}

// TestManifestRuns runs the Deployment's own arguments, with a file, a server and a free port in the place of its database, API and port. It
// answers its probes, sends with the credentials of the mounted file, and stops in its time.
func TestManifestRuns(t *testing.T) {
	var pg workload
	manifest(t, "deployment.yaml", &pg)
	c := pg.Spec.Template.Spec.Containers[0]
	arrived, answer := make(chan string, 1), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		arrived <- req.Header.Get("Authorization")
		<-answer
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	worker, address, said := started(ctx, t, &c, enqueued(t, api.URL, "/payments"), api.URL)
	select {
	case got := <-arrived:
		if got != "Bearer live" {
			t.Errorf("the API got the credential %q", got)
		}
	case <-ctx.Done():
		t.Fatalf("nothing was sent: %s", said)
	}
	for _, p := range []*probe{c.ReadinessProbe, c.LivenessProbe} {
		if status := ask(t, address+p.HTTPGet.Path); status != http.StatusOK {
			t.Errorf("%s answers %d", p.HTTPGet.Path, status)
		}
	}
	begun := time.Now()
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for ask(t, address+c.ReadinessProbe.HTTPGet.Path) != http.StatusServiceUnavailable { // bounded by ctx, which kills it
		time.Sleep(10 * time.Millisecond)
	}
	if status := ask(t, address+c.LivenessProbe.HTTPGet.Path); status != http.StatusOK {
		t.Errorf("while it stops, the liveness probe answers %d: it would be killed", status)
	}
	close(answer)
	if err := worker.Wait(); err != nil || time.Since(begun) > time.Duration(pg.Spec.Template.Spec.Grace)*time.Second {
		t.Errorf("it ended after %v: %v: %s", time.Since(begun), err, said)
	}
}

// enqueued returns a file with an operation for the API.
func enqueued(t *testing.T, api string, paths ...string) (journal string) {
	t.Helper()
	journal = filepath.Join(t.TempDir(), "j.db")
	client, err := oncehttp.Open(journal, oncehttp.Config{Origins: []string{api}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Enqueue(req, oncehttp.Key("order:"+path[1:])); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return journal
}

// started starts the container's command, and returns the address of its port. said is what it prints, to be read after its end.
func started(ctx context.Context, t *testing.T, c *container, journal, api string) (worker *exec.Cmd, address string, said *bytes.Buffer) {
	t.Helper()
	name, err := command()
	if err != nil {
		t.Fatal(err)
	}
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("Authorization: Bearer live\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	_ = free.Close()
	args := slices.Clone(c.Args)
	for i, arg := range args {
		switch flag, _, _ := strings.Cut(arg, "="); flag {
		case "--listen":
			args[i] = "--listen=" + address
		case "--auth":
			args[i] = "--auth=" + api + "=@" + headers
		}
	}
	worker, said = exec.CommandContext(ctx, name, args...), &bytes.Buffer{}
	worker.Env = append(os.Environ(), c.Env[0].Name+"="+journal)
	worker.Stderr = said
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	return worker, "http://" + address, said
}

// ask returns the status of an answer.
func ask(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
