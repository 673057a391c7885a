"""JVMs with Debian 12's Hibernate."""

import shutil
import subprocess
from pathlib import Path

from tests.long.interop.mixing import HERE, Peer
from tests.support.programs import require

JARS = Path("/usr/share/java")
CLASS_PATH = [
    JARS / f"{name}.jar"
    for name in (
        *("hibernate-core", "hibernate-commons-annotations", "postgresql"),
        *("geronimo-jpa_2.0_spec", "geronimo-jta-1.2-spec", "slf4j-api", "slf4j-nop"),
        *("javassist", "dom4j", "antlr", "commons-collections3"),
    )
]
PACKAGES = (
    "openjdk-17-jdk-headless libhibernate3-java libpostgresql-jdbc-java "
    "libjavassist-java"
)
# Many short lives beside each other on few cores.
OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m"]


def require_hibernate() -> None:
    if not shutil.which("javac") or not all(jar.exists() for jar in CLASS_PATH):
        require(f"Hibernate is missing. Debian 12: apt install {PACKAGES}")


def compile_draw(folder: Path) -> None:
    source = HERE / "hibernate" / "Draw.java"
    subprocess.run(["javac", "-d", folder, "-cp", class_path(), source], check=True)


def class_path(*folders: Path) -> str:
    return ":".join(map(str, [*folders, *CLASS_PATH]))


def jvm(folder: Path) -> Peer:
    """Start a JVM on the class that was compiled into the folder."""
    command = ["java", *OPTIONS, "-cp", class_path(folder), "Draw"]
    return Peer("hibernate", command, folder)
