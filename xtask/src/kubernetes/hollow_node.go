// hollow-node is a Kubernetes node without containers: a real kubelet with kubemark's fake runtime, and a volume driver that mounts nothing.
//
// FOLDER/containers.log gets a line for each container that starts or ends, and so shows what the node believes to run, also while the
// node is frozen. Each start of the program is a new boot: no container has survived, and the node reports the boot id that it was given.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	cadvisor "github.com/google/cadvisor/info/v1"
	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1alpha2"
	fakecri "k8s.io/cri-api/pkg/apis/testing"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	fakecadvisor "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

const (
	cores       = 16
	memoryBytes = 64 << 30
	maxPods     = 110
)

func main() {
	name := flag.String("name", "", "the node's name")
	bootID := flag.String("boot-id", "", "the id of this boot")
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig of the node's user")
	folder := flag.String("folder", "", "the folder for the node's files")
	driver := flag.String("csi-driver", "", "the name of the volume driver")
	lease := flag.Int("lease-seconds", 40, "the duration of the node's lease, which is renewed four times as often")
	labels := flag.String("labels", "{}", "the node's labels in JSON")
	flag.Parse()

	// kubemark makes its temporary folder there.
	must(os.Setenv("TMPDIR", *folder))
	settings := kubemark.HollowKubletOptions{NodeName: *name, MaxPods: maxPods}
	must(json.Unmarshal([]byte(*labels), &settings.NodeLabels))
	flags, config := kubemark.GetHollowKubeletConfig(&settings)
	flags.RootDirectory = filepath.Join(*folder, "kubelet")
	config.EnableServer = false
	config.EnableControllerAttachDetach = true
	config.NodeLeaseDurationSeconds = int32(*lease)
	config.NodeStatusUpdateFrequency.Duration = time.Second

	client, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	client.QPS, client.Burst = 50, 100
	heartbeats := *client
	heartbeats.QPS = -1
	heartbeats.Timeout = time.Duration(*lease) * time.Second

	serveVolumes(volumes{name: *name, driver: *driver}, filepath.Join(flags.RootDirectory, "plugins_registry"))
	kubemark.NewHollowKubelet(
		flags,
		config,
		clientOf(client),
		clientOf(&heartbeats),
		machine{Fake: &fakecadvisor.Fake{NodeName: *name}, bootID: *bootID},
		fakecri.NewFakeImageService(),
		newRuntime(filepath.Join(*folder, "containers.log"), *bootID),
		cm.NewStubContainerManager(),
	).Run()
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func clientOf(config *rest.Config) *kubernetes.Clientset {
	client, err := kubernetes.NewForConfig(config)
	must(err)
	return client
}

// machine is the computer that the kubelet sees.
type machine struct {
	*fakecadvisor.Fake
	bootID string
}

func (m machine) MachineInfo() (*cadvisor.MachineInfo, error) {
	info, err := m.Fake.MachineInfo()
	if err != nil {
		return nil, err
	}
	info.BootID = m.bootID
	info.NumCores = cores
	info.MemoryCapacity = memoryBytes
	return info, nil
}

// event is a line of the log.
type event struct {
	AtMs      int64  `json:"at_ms"`
	Boot      string `json:"boot"`
	Event     string `json:"event"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Container string `json:"container"`
}

// runtime is kubemark's runtime with a log.
type runtime struct {
	*fakecri.FakeRuntimeService
	guard   sync.Mutex
	log     *os.File
	boot    string
	known   map[string]event
	running map[string]bool
}

func newRuntime(path string, boot string) *runtime {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	fake := fakecri.NewFakeRuntimeService()
	fake.FakeStatus = &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true},
		{Type: cri.NetworkReady, Status: true},
	}}
	return &runtime{FakeRuntimeService: fake, log: file, boot: boot, known: map[string]event{}, running: map[string]bool{}}
}

func (r *runtime) CreateContainer(sandbox string, config *cri.ContainerConfig, of *cri.PodSandboxConfig) (string, error) {
	id, err := r.FakeRuntimeService.CreateContainer(sandbox, config, of)
	if err == nil {
		pod := of.GetMetadata()
		r.guard.Lock()
		defer r.guard.Unlock()
		r.known[id] = event{
			Boot:      r.boot,
			Namespace: pod.GetNamespace(),
			Pod:       pod.GetName(),
			UID:       pod.GetUid(),
			Container: config.GetMetadata().GetName(),
		}
	}
	return id, err
}

// StartContainer writes the line first: a container that runs is never missing in the log.
func (r *runtime) StartContainer(id string) error {
	r.note(id, true)
	err := r.FakeRuntimeService.StartContainer(id)
	if err != nil {
		r.note(id, false)
	}
	return err
}

func (r *runtime) StopContainer(id string, timeout int64) error {
	err := r.FakeRuntimeService.StopContainer(id, timeout)
	if err == nil {
		r.note(id, false)
	}
	return err
}

func (r *runtime) RemoveContainer(id string) error {
	err := r.FakeRuntimeService.RemoveContainer(id)
	if err == nil {
		r.note(id, false)
	}
	return err
}

func (r *runtime) note(id string, runs bool) {
	r.guard.Lock()
	defer r.guard.Unlock()
	if r.running[id] == runs {
		return
	}
	r.running[id] = runs
	line := r.known[id]
	line.AtMs = time.Now().UnixNano() / int64(time.Millisecond)
	line.Event = "ended"
	if runs {
		line.Event = "started"
	}
	text, err := json.Marshal(line)
	must(err)
	_, err = r.log.Write(append(text, '\n'))
	must(err)
}

// volumes is a driver on this node, and its registration with the kubelet. A mounted volume is an empty folder.
type volumes struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	name   string
	driver string
}

func serveVolumes(driver volumes, folder string) {
	must(os.MkdirAll(folder, 0o750))
	socket := filepath.Join(folder, driver.driver+".sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	must(err)
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, &driver)
	csi.RegisterNodeServer(server, &driver)
	registration.RegisterRegistrationServer(server, &driver)
	go func() { log.Fatal(server.Serve(listener)) }()
}

func (v *volumes) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              v.driver,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (v *volumes) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("the volume driver is registered: %t %s", status.PluginRegistered, status.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func (v *volumes) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: v.driver, VendorVersion: "1"}, nil
}

func (v *volumes) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (v *volumes) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: v.name}, nil
}

func (v *volumes) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (v *volumes) NodePublishVolume(_ context.Context, asked *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, os.MkdirAll(asked.TargetPath, 0o750)
}

func (v *volumes) NodeUnpublishVolume(_ context.Context, asked *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(asked.TargetPath)
}
