package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"colophon/internal/webhook"
)

// The sender's half is the sender's own code.

func newSecret(t testing.TB) webhook.Secret {
	t.Helper()
	secret, err := webhook.NewSecret(rand.Reader)
	must(t, err)
	return secret
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// announce is an attempt to announce a release, now.
func announce(t testing.TB, project string, release int64, secrets ...webhook.Secret) webhook.Attempt {
	t.Helper()
	id, err := webhook.NewID(rand.Reader)
	must(t, err)
	body, err := webhook.Release{
		Project: webhook.Project{ID: project, Name: "Handbuch"}, Number: release, URL: "https://colophon.example/r",
	}.Body(time.Now())
	must(t, err)
	return webhook.Attempt{ID: id, Body: body, At: time.Now(), Number: 1, Secrets: secrets}
}

func request(a webhook.Attempt) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(a.Body))
	r.Header = a.Headers()
	return r
}

type world struct {
	t       testing.TB
	secret  webhook.Secret
	path    string
	handler *receiver
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, secret: newSecret(t), path: filepath.Join(t.TempDir(), "inbox")}
	w.open()
	return w
}

// open opens the inbox anew. What was open before is left as a crash leaves it,
// but for its lock.
func (w *world) open() {
	w.t.Helper()
	if w.handler != nil {
		w.handler.inbox.close()
	}
	box, err := openInbox(w.path)
	must(w.t, err)
	w.t.Cleanup(box.close)
	signatures, err := webhooks.NewWebhook(w.secret.Reveal())
	must(w.t, err)
	w.handler = &receiver{signatures: signatures, inbox: box}
}

func (w *world) send(a webhook.Attempt) (status int, what string) {
	return w.handler.receive(httptest.NewRecorder(), request(a))
}

// takes sends and expects a 204 with these words.
func (w *world) takes(a webhook.Attempt, want string) {
	w.t.Helper()
	if status, what := w.send(a); status != http.StatusNoContent || what != want {
		w.t.Errorf("answered %d: %s, want 204: %s", status, what, want)
	}
}

// acts lets the worker run until it has acted n times: then nothing waits any more.
func (w *world) acts(n int) (releases []string) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	did := make(chan announcement)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.handler.inbox.work(ctx, func(_ context.Context, a announcement) error { did <- a; return nil })
	}()
	for range n {
		select {
		case a := <-did:
			releases = append(releases, fmt.Sprintf("%s/%d", a.Project, a.Release))
		case <-time.After(30 * time.Second):
			w.t.Fatalf("acted on %v only", releases)
		}
	}
	stop()
	select {
	case a := <-did:
		w.t.Errorf("acted on %s/%d too", a.Project, a.Release)
	case <-ended:
	}
	if a, more := w.handler.inbox.next(); more {
		w.t.Errorf("%s/%d waits too", a.Project, a.Release)
	}
	slices.Sort(releases)
	return releases
}

func TestRequestsAreAnsweredByWhatTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	right := func() webhook.Attempt { return announce(t, "p1", 5, w.secret) }
	of := func(change func(*webhook.Attempt)) *http.Request {
		a := right()
		change(&a)
		return request(a)
	}
	changed := func(change func(*http.Request)) *http.Request {
		r := request(right())
		change(r)
		return r
	}
	body := func(text string) *http.Request { return of(func(a *webhook.Attempt) { a.Body = []byte(text) }) }
	test, err := webhook.Test{Project: webhook.Project{ID: "p1"}, ID: "t1"}.Body(time.Now())
	must(t, err)
	for _, row := range []struct {
		name    string
		request *http.Request
		status  int
	}{
		{"right", request(right()), 204},
		{"old and new secret sign, and this is the old", request(announce(t, "p1", 5, newSecret(t), w.secret)), 204},
		{"old and new secret sign, and this is the new", request(announce(t, "p1", 5, w.secret, newSecret(t))), 204},
		{"another secret", request(announce(t, "p1", 5, newSecret(t))), 401},
		{"two other secrets", request(announce(t, "p1", 5, newSecret(t), newSecret(t))), 401},
		{"six minutes old", of(func(a *webhook.Attempt) { a.At = a.At.Add(-6 * time.Minute) }), 401},
		{"six minutes ahead", of(func(a *webhook.Attempt) { a.At = a.At.Add(6 * time.Minute) }), 401},
		{"four minutes old", of(func(a *webhook.Attempt) { a.At = a.At.Add(-4 * time.Minute) }), 204},
		{"a changed body", changed(func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(string(right().Body), `"release":5`, `"release":6`, 1)))
		}), 401},
		{"another id", changed(func(r *http.Request) { r.Header.Set(webhook.HeaderID, "msg_other") }), 401},
		{"a newer timestamp", changed(func(r *http.Request) {
			r.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(time.Now().Unix()+1, 10))
		}), 401},
		{"no signature", changed(func(r *http.Request) { r.Header.Del(webhook.HeaderSignature) }), 401},
		{"no headers at all", changed(func(r *http.Request) { r.Header = http.Header{} }), 401},
		{"a GET", changed(func(r *http.Request) { r.Method = http.MethodGet }), 405},
		{"too large", body(strings.Repeat("x", largestBody+1)), 413},
		{"signed, and not JSON", body("{"), 400},
		{"signed, and of no project", body(`{"type":"release.published","data":{"release":5}}`), 400},
		{"signed, and of no release", body(`{"type":"release.published","data":{"project":{"id":"p1"}}}`), 400},
		{"a test", body(string(test)), 204},
		{"a type of later", body(`{"type":"release.withdrawn"}`), 204},
	} {
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, row.request)
		if recorder.Code != row.status || recorder.Body.Len() > 0 {
			t.Errorf("%s: answered %d %q, want %d", row.name, recorder.Code, recorder.Body, row.status)
		}
	}
	if got := w.acts(1); !slices.Equal(got, []string{"p1/5"}) {
		t.Errorf("acted on %v", got)
	}
}

func TestARepeatIsDroppedHoweverManyComeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := announce(t, "p1", 5, w.secret)
	var wait sync.WaitGroup
	words := make([]string, 40)
	for n := range words {
		wait.Go(func() { _, words[n] = w.send(a) })
	}
	wait.Wait()
	slices.Sort(words)
	if words[len(words)-1] != taken || words[len(words)-2] != repeat || words[0] != repeat {
		t.Errorf("said: %v", words)
	}
	w.acts(1)
	w.takes(a, repeat)
	w.open()
	w.takes(a, repeat)
	w.acts(0)
}

func TestALowerReleaseIsAnsweredAndIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.takes(announce(t, "p1", 6, w.secret), taken)
	for range 2 { // the second time from the file
		w.takes(announce(t, "p1", 5, w.secret), older)
		w.takes(announce(t, "p2", 5, w.secret), taken) // another project has its own numbers
		w.open()
	}
	w.takes(announce(t, "p1", 6, w.secret), taken) // over a second destination, say
	if got := w.acts(2); !slices.Equal(got, []string{"p1/6", "p2/5"}) {
		t.Errorf("acted on %v", got)
	}
}

func TestWhatFailsIsTriedAgainAndGivenUpForANewerRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.takes(announce(t, "p1", 5, w.secret), taken)
	ctx, stop := context.WithCancel(t.Context())
	var tried []int64
	w.handler.inbox.work(ctx, func(_ context.Context, a announcement) error {
		tried = append(tried, a.Release)
		switch len(tried) {
		case 1:
			w.takes(announce(t, "p1", 6, w.secret), taken)
			return errors.New("no room")
		case 2:
			return errors.New("still no room")
		}
		stop()
		return nil
	})
	if !slices.Equal(tried, []int64{5, 6, 6}) {
		t.Errorf("tried %v", tried)
	}
	w.acts(0)
}

func TestWhatACrashCutOffWasNotAnsweredAndIsDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := announce(t, "p1", 5, w.secret), announce(t, "p1", 6, w.secret)
	w.takes(first, taken)
	whole, err := os.ReadFile(w.path)
	must(t, err)
	w.takes(second, taken)
	all, err := os.ReadFile(w.path)
	must(t, err)
	for cut := len(whole); cut < len(all); cut++ {
		must(t, os.WriteFile(w.path, all[:cut], 0o600))
		w.open()
		if kept, err := os.ReadFile(w.path); err != nil || !bytes.Equal(kept, whole) {
			t.Fatalf("cut at %d: %q, %v", cut, kept, err)
		}
		w.takes(first, repeat)
		w.takes(second, taken)
	}
}

func TestADamagedInboxIsNotGuessedAbout(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}\n", "nonsense\n", "{\"accepted\":{\"id\":\"a\"}}\n\n"} {
		path := filepath.Join(t.TempDir(), "inbox")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := openInbox(path); err == nil {
			t.Errorf("%q was taken for an inbox", text)
		}
	}
}

func TestAnInboxBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := openInbox(w.path); err == nil {
		t.Error("it was opened twice")
	}
}

func TestWhatCannotBeWrittenIsNotAnsweredAsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler.inbox.close() // as a disk that is gone
	a := announce(t, "p1", 5, w.secret)
	for range 2 {
		if status, what := w.send(a); status != http.StatusServiceUnavailable {
			t.Errorf("answered %d: %s", status, what)
		}
	}
	select {
	case <-w.handler.inbox.broken:
	default:
		t.Error("nobody is told that the inbox is broken")
	}
	w.open()
	w.takes(a, taken)
}

// A receiver as a process of its own, which can be killed.

const (
	childEnv    = "RECEIVER_TEST_INBOX"
	childActEnv = "RECEIVER_TEST_ACT" // "" acts; "die" is killed when it is to act
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
		return
	}
	os.Exit(m.Run())
}

// child is the receiver, whose work is a line on standard output.
func child(path string) {
	err := run(context.Background(), "127.0.0.1:0", path, os.Getenv("COLOPHON_SECRET"), func(_ context.Context, a announcement) error {
		if os.Getenv(childActEnv) == "die" {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
		fmt.Println(a.Release, a.ID)
		return nil
	})
	fmt.Fprintln(os.Stderr, "the receiver ended:", err)
	os.Exit(1)
}

type process struct {
	command *exec.Cmd
	address string
	acted   chan string // lines
	ended   chan struct{}
}

func (w *world) process(environment ...string) *process {
	w.t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childEnv+"="+w.path, "COLOPHON_SECRET="+w.secret.Reveal())
	command.Env = append(command.Env, environment...)
	out, err := command.StdoutPipe()
	must(w.t, err)
	said, err := command.StderrPipe()
	must(w.t, err)
	must(w.t, command.Start())
	p := &process{command: command, acted: make(chan string, 1000), ended: make(chan struct{})}
	w.t.Cleanup(p.kill)
	address := make(chan string, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.acted <- lines.Text()
		}
	})
	reading.Go(func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), "receiving at "); ok {
				address <- at
			}
		}
	})
	go func() {
		reading.Wait()
		_ = command.Wait()
		close(p.acted)
		close(p.ended)
	}()
	select {
	case p.address = <-address:
	case <-p.ended:
		w.t.Fatal("the receiver ended at once")
	}
	return p
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// send is one attempt over the network; 0 where no answer came.
func (p *process) send(t testing.TB, a webhook.Attempt) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.address, bytes.NewReader(a.Body))
	must(t, err)
	r.Header = a.Headers()
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestKilledBetweenTakingInAndActingItActsAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler.inbox.close()
	a := announce(t, "p1", 5, w.secret)
	dying := w.process(childActEnv + "=die")
	if status := dying.send(t, a); status != http.StatusNoContent && status != 0 { // killed while it answered
		t.Fatalf("answered %d", status)
	}
	<-dying.ended
	next := w.process()
	if got, want := <-next.acted, "5 "+a.ID; got != want {
		t.Errorf("acted on %q, want %q", got, want)
	}
	if status := next.send(t, a); status != http.StatusNoContent {
		t.Errorf("the repeat was answered %d", status)
	}
	next.kill()
	if line, more := <-next.acted; more {
		t.Errorf("acted on %q too", line)
	}
}

// A sender repeats until it is answered, as Colophon does; the receiver is
// killed again and again.
func TestKilledAtAnyMomentItActsOnTheNewestAndNeverGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler.inbox.close()
	const releases, kills = 60, 6
	var acted []string
	ids := map[int64]string{}
	running := w.process()
	stop := func() {
		running.kill()
		for line := range running.acted {
			acted = append(acted, line)
		}
	}
	for release := int64(1); release <= releases; release++ {
		a := announce(t, "p1", release, w.secret)
		ids[release] = a.ID
		if release%(releases/kills) == 0 {
			dying := running
			go func() { _ = dying.command.Process.Kill() }() // at whatever moment that is
		}
		for running.send(t, a) != http.StatusNoContent {
			stop()
			running = w.process()
		}
	}
	last := fmt.Sprintf("%d %s", releases, ids[releases])
	for len(acted) == 0 || acted[len(acted)-1] != last {
		select {
		case line, ok := <-running.acted:
			if ok {
				acted = append(acted, line)
				continue
			}
			stop()
			running = w.process() // killed after its last answer
		case <-time.After(30 * time.Second):
			t.Fatalf("the newest was not acted on: %v", acted)
		}
	}
	stop()
	before := int64(0)
	for _, line := range acted {
		var release int64
		var id string
		if _, err := fmt.Sscan(line, &release, &id); err != nil || ids[release] != id {
			t.Fatalf("acted on %q: %v", line, err)
		}
		if release < before {
			t.Errorf("acted on release %d after %d", release, before)
		}
		before = release
	}
	text, err := os.ReadFile(w.path)
	must(t, err)
	accepted := map[string]int{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var r record
		must(t, decoder.Decode(&r))
		if r.Accepted != nil {
			accepted[r.Accepted.ID]++
		}
	}
	for release, id := range ids {
		if accepted[id] != 1 {
			t.Errorf("release %d was taken in %d times", release, accepted[id])
		}
	}
}

func TestItStartsWithASigningSecretOnly(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/checked/testdata/secrets.json") // one table for all receivers
	must(t, err)
	var cases []struct {
		Name, Secret string
		Right        bool
	}
	must(t, json.Unmarshal(text, &cases))
	for _, c := range cases {
		ctx, stop := context.WithCancel(t.Context())
		stop() // what starts ends at once
		err := run(ctx, "127.0.0.1:0", filepath.Join(t.TempDir(), "inbox"), c.Secret, act)
		if c.Right != (err == nil) || err != nil && !strings.Contains(err.Error(), "COLOPHON_SECRET") {
			t.Errorf("%s: %v", c.Name, err)
		}
		if err != nil && len(c.Secret) > 8 && strings.Contains(err.Error(), strings.TrimSpace(c.Secret)) {
			t.Errorf("%s: the secret is repeated: %v", c.Name, err)
		}
	}
	if len(cases) < 20 {
		t.Errorf("%d cases", len(cases))
	}
}
