package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const coldStarts = 30

// coldStart starts each function as it is deployed, built for this machine, under
// AWS's runtime interface emulator, thirty times, and asks it once each time. The
// first call finds no connection, no cached key and no code in memory but what
// init brought.
func coldStart(ctx context.Context, o options) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	emulator := filepath.Join(root, ".tools", "bin", "aws-lambda-rie")
	if _, err := os.Stat(emulator); err != nil {
		return errors.New("the emulator is not installed: run make bench, or\n  GOBIN=$PWD/.tools/bin go install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@" + emulatorVersion)
	}
	began, before := time.Now(), loadAverage()
	w, err := newWorld(ctx, worldConfig{Projects: 1, Drafts: 1, Destinations: 1, Concurrency: 2, Slow: 2, StreamInterval: 5 * time.Millisecond})
	if w != nil {
		defer w.end()
	}
	if err != nil {
		return err
	}
	r := &run{scenario: scenario{name: "coldstart"}, w: w, began: began}
	for _, name := range functionNames {
		if err := r.coldStartOf(ctx, root, emulator, name); err != nil {
			r.faults = append(r.faults, fmt.Sprintf("%s: %v", name, err))
		}
	}
	result := newResult("coldstart", began, o, before)
	result.Engine = "aws-lambda-rie " + emulatorVersion + ", dynoxide, kumo"
	result.Settings = fmt.Sprintf("%d starts of each function, one request each", coldStarts)
	result.Balanced, result.Faults, result.Figures = len(r.faults) == 0, r.faults, r.figures
	result.print(os.Stdout)
	if o.row {
		if err := result.keep(nil); err != nil {
			return err
		}
	}
	if len(r.faults) > 0 {
		return errors.New("coldstart failed")
	}
	return nil
}

// emulatorVersion is the only version that the module proxy serves.
const emulatorVersion = "v0.0.0-20261030222936-bef5c4ba774d"

// firstEvents are what each function is asked once.
var firstEvents = map[string]string{
	"api":           `{"resource":"/{proxy+}","path":"/projects","httpMethod":"GET","multiValueHeaders":{"Authorization":["Bearer %s"]},"pathParameters":{"proxy":"projects"},"requestContext":{"stage":"v1","path":"/v1/projects","domainName":"api.colophon.example","requestId":"first"}}`,
	"outbox-stream": `{"Records":[]}`,
	"deliver":       `{"Records":[{"messageId":"m","receiptHandle":"r","body":"{\"v\":1,\"project\":\"prj_aaaaaaaaaaaaaaaaaaaa\",\"destination\":\"dst_aaaaaaaaaaaa\",\"release\":1,\"trace\":\"1-0-0\"}","attributes":{"ApproximateReceiveCount":"1"},"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:000000000000:queue"}]}`,
	"sweep":         `{}`,
}

func (r *run) coldStartOf(ctx context.Context, root, emulator, name string) error {
	binary := filepath.Join(r.w.dir, name)
	if err := buildFunction(ctx, root, goruntime.GOARCH, name, binary); err != nil {
		return err
	}
	deployed := filepath.Join(r.w.dir, name+"-arm64")
	if err := buildFunction(ctx, root, "arm64", name, deployed); err != nil {
		return err
	}
	size, err := zipped(deployed)
	if err != nil {
		return err
	}
	var inits, firsts []time.Duration
	for range coldStarts {
		init, first, err := r.start(ctx, emulator, binary, name)
		if err != nil {
			return err
		}
		inits, firsts = append(inits, init), append(firsts, first)
	}
	slices.Sort(inits)
	slices.Sort(firsts)
	r.atMost("init of "+name+" p50", milliseconds(percentile(inits, 0.5)), "ms", 60)
	r.figure("init of "+name+" p99", milliseconds(percentile(inits, 0.99)), "ms")
	r.figure("first answer of "+name+" p50", milliseconds(percentile(firsts, 0.5)), "ms from the request that starts it")
	r.figure("first answer of "+name+" p99", milliseconds(percentile(firsts, 0.99)), "ms from the request that starts it")
	r.atMost("zip of "+name, float64(size)/1e6, "MB", 5)
	return nil
}

// buildFunction builds as the Makefile does.
func buildFunction(ctx context.Context, root, architecture, name, to string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=", "-o", to, "./functions/"+name)
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, said)
	}
	return nil
}

var initTime = regexp.MustCompile(`INIT REPORT\(durationMs: ([0-9.]+)\)`)

// start starts the emulator with a function and asks once.
func (r *run) start(ctx context.Context, emulator, binary, name string) (init, first time.Duration, err error) {
	address, api, err := freeAddresses()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, emulator, "--runtime-interface-emulator-address", address, "--runtime-api-address", api, binary)
	cmd.Env = append(r.w.processes[name].env, "PATH="+os.Getenv("PATH"), "AWS_LAMBDA_FUNCTION_TIMEOUT=60", "HOME="+r.w.dir)
	cmd.SysProcAttr = endsWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	reports := make(chan time.Duration, 1)
	var said bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if match := initTime.FindStringSubmatch(lines.Text()); match != nil {
				ms, _ := strconv.ParseFloat(match[1], 64)
				select {
				case reports <- time.Duration(ms * float64(time.Millisecond)):
				default:
				}
			}
		}
	}()
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // it ends the function
		time.AfterFunc(2*time.Second, func() { _ = cmd.Process.Kill() })
		<-read
		_ = cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, said.String())
		}
	}()
	if err := reachable(ctx, address); err != nil {
		return 0, 0, err
	}
	event := firstEvents[name]
	if name == "api" {
		event = fmt.Sprintf(event, r.w.token)
	}
	began := time.Now()
	answer, err := http.Post("http://"+address+"/2015-03-31/functions/function/invocations", "application/json", strings.NewReader(event))
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, 0, err
	}
	first = time.Since(began)
	if bytes.Contains(body, []byte("errorMessage")) || name == "api" && !bytes.Contains(body, []byte(`"statusCode":200`)) {
		return 0, 0, fmt.Errorf("answered %s", body)
	}
	select {
	case init = <-reports:
	case <-ctx.Done():
		return 0, 0, errors.New("no report of its init")
	}
	return init, first, nil
}

func freeAddresses() (one, other string, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return a.Addr().String(), b.Addr().String(), nil
}

func reachable(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return ctx.Err()
}
