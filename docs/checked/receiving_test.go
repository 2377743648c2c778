package checked_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/webhook"
)

const receivingPage = "../receiving.md"

// snippet is the one block of a language on a page.
func snippet(t testing.TB, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%s has %d blocks of %s, want one", page, len(blocks), language)
	}
	return string(blocks[0][1])
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write puts a snippet into a file of its own folder.
func write(t testing.TB, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestTheGoReceiver(t *testing.T) {
	t.Parallel()
	source := write(t, "main.go", snippet(t, receivingPage, "go"))
	binary := filepath.Join(filepath.Dir(source), "receiver")
	if said, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	holdReceiver(t, binary)
}

func TestTheShownRequestHasAnAnnouncementsFields(t *testing.T) {
	t.Parallel()
	head, shown, _ := strings.Cut(snippet(t, receivingPage, "http"), "\n\n")
	body, err := webhook.Release{Project: webhook.Project{ID: "p", Name: "n"}, Number: 6}.Body(time.Now())
	must(t, err)
	if got, want := fieldsOf(t, shown), fieldsOf(t, string(body)); !slices.Equal(got, want) {
		t.Errorf("the body shows %v, it has %v", got, want)
	}
	a := webhook.Attempt{ID: "msg_x", Number: 1, Previous: 5, Secrets: []webhook.Secret{newSecret(t)}}
	for name := range a.Headers() {
		if !strings.Contains(head, "\n"+name+": ") {
			t.Errorf("the header %s is not shown", name)
		}
	}
}

func TestThePagesNumbersAreTheCodes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(receivingPage)
	must(t, err)
	page := strings.Join(strings.Fields(string(text)), " ")
	for _, says := range []string{
		fmt.Sprintf("An attempt ends after %.0f seconds", delivery.AttemptTime.Seconds()),
		fmt.Sprintf("takes longer than %.0f seconds is served apart", delivery.SlowAttempt.Seconds()),
		fmt.Sprintf("%d tries within an hour", delivery.Tries),
		fmt.Sprintf("For %.0f hours every request carries two signatures", webhook.RotationOverlap.Hours()),
	} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q", says)
		}
	}
	if delivery.RetryHorizon != time.Hour {
		t.Errorf("tries end after %v", delivery.RetryHorizon)
	}
	for status := 200; status < 600; status++ {
		want := delivery.EffectFailed // "any other 4xx", and 3xx
		switch {
		case status < 300:
			want = delivery.EffectDelivered
		case status == 410:
			want = delivery.EffectFailedAndPaused
		case status == 408, status == 425, status == 429, status >= 500:
			want = delivery.EffectNextTry
		}
		if got := delivery.ClassOfStatus(status).Effect(); got != want {
			t.Errorf("%d leads to effect %d, the page says %d", status, got, want)
		}
	}
}

func fieldsOf(t testing.TB, text string) (names []string) {
	t.Helper()
	var object map[string]any
	must(t, json.Unmarshal([]byte(text), &object))
	var walk func(prefix string, object map[string]any)
	walk = func(prefix string, object map[string]any) {
		for name, value := range object {
			names = append(names, prefix+name)
			if inner, ok := value.(map[string]any); ok {
				walk(prefix+name+".", inner)
			}
		}
	}
	walk("", object)
	slices.Sort(names)
	return names
}

func newSecret(t testing.TB) webhook.Secret {
	t.Helper()
	secret, err := webhook.NewSecret(rand.Reader)
	must(t, err)
	return secret
}

// announce is an attempt to announce a release, now.
func announce(t testing.TB, project string, release int64, secrets ...webhook.Secret) webhook.Attempt {
	t.Helper()
	id, err := webhook.NewID(rand.Reader)
	must(t, err)
	body, err := webhook.Release{
		Project: webhook.Project{ID: project, Name: "Büro <&> 🦊\u2028"}, Number: release, Message: "\"quoted\"\n",
	}.Body(time.Now())
	must(t, err)
	return webhook.Attempt{ID: id, Body: body, At: time.Now(), Number: 1, Secrets: secrets}
}

// running is a page's receiver at work in a folder of its own.
type running struct {
	address string
	kill    func()
	acted   chan string // lines of its output that say that it acted, as "project/release"
}

var out = regexp.MustCompile(`release (\d+) of (\S+) is out`)

// start starts a receiver and waits until it listens.
func start(t testing.TB, folder, secret string, command ...string) *running {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	host := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(host)
	c := exec.Command(command[0], command[1:]...)
	c.Dir = folder
	c.Env = append(os.Environ(), "COLOPHON_SECRET="+secret, "PORT="+port)
	reader, writer := io.Pipe()
	c.Stdout, c.Stderr = writer, writer
	must(t, c.Start())
	r := &running{address: "http://" + host + "/", acted: make(chan string, 100)}
	ended := make(chan struct{})
	var said bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if found := out.FindStringSubmatch(lines.Text()); found != nil {
				r.acted <- found[2] + "/" + found[1]
			}
		}
	})
	go func() { _ = c.Wait(); writer.Close(); reading.Wait(); close(ended) }()
	r.kill = func() { _ = c.Process.Kill(); <-ended }
	t.Cleanup(r.kill)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(time.Minute); ; {
		if conn, err := net.Dial("tcp", host); err == nil {
			conn.Close()
			return r
		}
		select {
		case <-again.C:
		case <-ended:
			t.Fatalf("it ended at once:\n%s", &said)
		case <-deadline:
			t.Fatal("it does not listen")
		}
	}
}

// send makes one request; 0 where the connection broke.
func (r *running) send(t testing.TB, a webhook.Attempt, change ...func(*http.Request)) int {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.address, bytes.NewReader(a.Body))
	must(t, err)
	maps.Copy(q.Header, a.Headers())
	q.Close = true
	for _, c := range change {
		c(q)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// acts waits until it acts on want, and on nothing before it; but on before again
// it may, where it was killed before it noted that it had.
func (r *running) acts(t testing.TB, want, before string) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case got := <-r.acted:
			if got == want {
				return
			}
			if got != before {
				t.Errorf("acted on %s, want %s", got, want)
			}
		case <-deadline:
			t.Fatalf("did not act on %s", want)
		}
	}
}

// secretCase is a line of the table of secrets that each receiver is held to.
type secretCase struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
	Right  bool   `json:"right"`
}

func secretCases(t testing.TB) (cases []secretCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/secrets.json")
	must(t, err)
	must(t, json.Unmarshal(text, &cases))
	return cases
}

// holdToSecrets holds a receiver to the table: it takes what is signed with a
// right secret, and does not start with a wrong one.
func holdToSecrets(t *testing.T, command ...string) {
	right, wrong := 0, 0
	for _, c := range secretCases(t) {
		if c.Right {
			right++
			secret, err := webhook.ParseSecret(strings.TrimSpace(c.Secret))
			must(t, err)
			r := start(t, t.TempDir(), c.Secret, command...)
			if got := r.send(t, announce(t, "p1", 5, secret)); got != http.StatusNoContent {
				t.Errorf("%s: answered %d", c.Name, got)
			}
			if got := r.send(t, announce(t, "p1", 6, newSecret(t))); got != http.StatusUnauthorized {
				t.Errorf("%s: another secret: answered %d", c.Name, got)
			}
			r.kill()
			continue
		}
		wrong++
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		one := exec.CommandContext(ctx, command[0], command[1:]...)
		one.Dir, one.Env = t.TempDir(), append(os.Environ(), "COLOPHON_SECRET="+c.Secret, "PORT=0")
		said, err := one.CombinedOutput()
		if ended := new(exec.ExitError); ctx.Err() != nil || !errors.As(err, &ended) || ended.ExitCode() != 1 {
			t.Errorf("%s: it starts, or ends otherwise than with 1: %v\n%s", c.Name, err, said)
		}
		cancel()
		if !strings.Contains(string(said), "COLOPHON_SECRET is not a signing secret") || len(c.Secret) > 8 && strings.Contains(string(said), strings.TrimSpace(c.Secret)) {
			t.Errorf("%s: says %q", c.Name, said)
		}
	}
	if right < 5 || wrong < 15 {
		t.Errorf("the table has %d right and %d wrong secrets", right, wrong)
	}
}

// holdReceiver holds a receiver to the page.
func holdReceiver(t *testing.T, command ...string) {
	t.Run("secrets", func(t *testing.T) {
		t.Parallel()
		holdToSecrets(t, command...)
	})
	folder := t.TempDir()
	secret := newSecret(t)
	r := start(t, folder, secret.Reveal(), command...)
	right := func() webhook.Attempt { return announce(t, "p1", 5, secret) }
	of := func(change func(*webhook.Attempt)) webhook.Attempt {
		a := right()
		change(&a)
		return a
	}
	signed := func(body string) webhook.Attempt { return of(func(a *webhook.Attempt) { a.Body = []byte(body) }) }
	set := func(name, value string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set(name, value) }
	}
	test, err := webhook.Test{Project: webhook.Project{ID: "p1"}, ID: "t1"}.Body(time.Now())
	must(t, err)
	for _, row := range []struct {
		name    string
		attempt webhook.Attempt
		change  func(*http.Request)
		want    []int // one of these
	}{
		{"another secret", announce(t, "p1", 5, newSecret(t)), nil, []int{401}},
		{"two other secrets", announce(t, "p1", 5, newSecret(t), newSecret(t)), nil, []int{401}},
		{"six minutes old", of(func(a *webhook.Attempt) { a.At = a.At.Add(-6 * time.Minute) }), nil, []int{401}},
		{"six minutes ahead", of(func(a *webhook.Attempt) { a.At = a.At.Add(6 * time.Minute) }), nil, []int{401}},
		{"a changed body", right(), func(q *http.Request) {
			body := strings.Replace(string(right().Body), `"release":5`, `"release":6`, 1)
			q.Body, q.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}, []int{401}},
		{"another id", right(), set(webhook.HeaderID, "msg_other"), []int{401}},
		{"another timestamp", right(), set(webhook.HeaderTimestamp, fmt.Sprint(time.Now().Unix()+1)), []int{401}},
		{"a timestamp that is no number", right(), set(webhook.HeaderTimestamp, "now"), []int{401}},
		{"no signature", right(), func(q *http.Request) { q.Header.Del(webhook.HeaderSignature) }, []int{401}},
		{"a signature off its grammar", right(), set(webhook.HeaderSignature, "v1"), []int{401}},
		{"a signature that is no base64", right(), set(webhook.HeaderSignature, "v1,!!!"), []int{401}},
		{"a body that is no text", right(), func(q *http.Request) {
			q.Body, q.ContentLength = io.NopCloser(strings.NewReader("\xff\xfe")), 2
		}, []int{401}},
		{"too large", signed(strings.Repeat("x", 64<<10+1)), nil, []int{413, 0}}, // 0: not read to its end
		{"signed, and not JSON", signed("{"), nil, []int{400, 401}},
		{"a test", signed(string(test)), nil, []int{204}},
		{"a type of later", signed(`{"type":"release.withdrawn"}`), nil, []int{204}},
		{"old and new secret sign, and this is the old", announce(t, "p1", 5, newSecret(t), secret), nil, []int{204}},
	} {
		change := row.change
		if change == nil {
			change = func(*http.Request) {}
		}
		if got := r.send(t, row.attempt, change); !slices.Contains(row.want, got) {
			t.Errorf("%s: answered %d, want %v", row.name, got, row.want)
		}
	}
	r.acts(t, "p1/5", "")

	sixth := announce(t, "p1", 6, secret, newSecret(t)) // the new of two
	for range 2 {
		if got := r.send(t, sixth); got != http.StatusNoContent {
			t.Errorf("release 6: answered %d", got)
		}
	}
	r.acts(t, "p1/6", "")
	other := int64(0)
	for _, what := range []string{"from memory", "from the disk"} {
		if got := r.send(t, announce(t, "p1", 4, secret)); got != http.StatusNoContent {
			t.Errorf("an older release, known %s: answered %d", what, got)
		}
		if got := r.send(t, sixth); got != http.StatusNoContent {
			t.Errorf("a repeat, known %s: answered %d", what, got)
		}
		// Whatever it takes those for, it acts on it between these: in any order, so there are some.
		for range 8 {
			other++
			if got := r.send(t, announce(t, "p2", other, secret)); got != http.StatusNoContent {
				t.Errorf("release %d of another project: answered %d", other, got)
			}
			r.acts(t, fmt.Sprintf("p2/%d", other), fmt.Sprintf("p2/%d", other-1))
		}
		r.kill()
		r = start(t, folder, secret.Reveal(), command...)
	}
	if got := r.send(t, announce(t, "p1", 7, secret)); got != http.StatusNoContent {
		t.Errorf("release 7: answered %d", got)
	}
	r.acts(t, "p1/7", fmt.Sprintf("p2/%d", other))
}
