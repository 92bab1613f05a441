# rope.sh HOME
# Waits on stdin. A line there means that HOME is untied. The end of stdin without a line means that the test process has died: then the
# programs that run in HOME end, and HOME is removed.
home=$1
if read -r _; then exit 0; fi

# A program that is being killed may start another process meanwhile.
ends_some() {
    found=
    for process in /proc/[0-9]*; do
        case $(readlink "$process/cwd") in
        "$home" | "$home"/*)
            kill -s KILL "${process#/proc/}"
            found=yes
            ;;
        esac
    done
    [ -n "$found" ]
}

while ends_some; do sleep 0.1; done
rm -rf -- "$home"
