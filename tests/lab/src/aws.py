"""Makes what an account has, and prints it; from then on the server asks for rights. Its argument is the server's address."""

import json
import sys
import urllib.request

import boto3

url = sys.argv[1]
rights = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["ec2:DescribeInstances", "ec2:StopInstances", "ec2:StartInstances"],
            "Resource": "*",
        }
    ],
}


def client(service):
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="eu-central-1",
        aws_access_key_id="setup",
        aws_secret_access_key="setup",
    )


iam = client("iam")
iam.create_user(UserName="fence")
iam.put_user_policy(UserName="fence", PolicyName="fence", PolicyDocument=json.dumps(rights))
key = iam.create_access_key(UserName="fence")["AccessKey"]
made = client("ec2").run_instances(ImageId="ami-12345678", MinCount=2, MaxCount=2)
# The server takes the count as it stands, and not as a form.
no_more = urllib.request.Request(
    url + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}, method="POST"
)
urllib.request.urlopen(no_more).read()
print(
    json.dumps(
        {
            "instances": [instance["InstanceId"] for instance in made["Instances"]],
            "access_key": key["AccessKeyId"],
            "secret_key": key["SecretAccessKey"],
        }
    )
)
